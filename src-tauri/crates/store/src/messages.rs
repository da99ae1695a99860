//! The table of messages.

use rusqlite::{
    Connection, Row, ToSql, params,
    types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, ValueRef},
};
use tierbar_core::chat::{ChatMessage, Finish, Role};

pub(crate) fn add(
    connection: &Connection,
    chat: &str,
    message: &ChatMessage,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO messages (chat_id, role, content, tier, model, finish, decode_tokens_per_second,
             time_to_first_token_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute(params![
            chat,
            Word(message.role),
            message.content,
            message.tier,
            message.model,
            message.finish.map(Word),
            message.decode_tokens_per_second,
            message.time_to_first_token_ms,
        ])?;
    Ok(())
}

/// Oldest first.
pub(crate) fn of_chat(connection: &Connection, chat: &str) -> rusqlite::Result<Vec<ChatMessage>> {
    connection
        .prepare_cached(
            "SELECT role, content, tier, model, finish, decode_tokens_per_second, time_to_first_token_ms
             FROM messages WHERE chat_id = ?1 ORDER BY id",
        )?
        .query_map([chat], message)?
        .collect()
}

fn message(row: &Row) -> rusqlite::Result<ChatMessage> {
    Ok(ChatMessage {
        role: row.get::<_, Word<Role>>(0)?.0,
        content: row.get(1)?,
        tier: row.get(2)?,
        model: row.get(3)?,
        finish: row.get::<_, Option<Word<Finish>>>(4)?.map(|word| word.0),
        decode_tokens_per_second: row.get(5)?,
        time_to_first_token_ms: row.get(6)?,
    })
}

/// A closed set of words, kept as the wire spells them.
struct Word<T>(T);

impl<T: serde::Serialize> ToSql for Word<T> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match serde_json::to_value(&self.0) {
            Ok(serde_json::Value::String(word)) => Ok(word.into()),
            Ok(other) => Err(rusqlite::Error::ToSqlConversionFailure(
                format!("{other} is not a word").into(),
            )),
            Err(error) => Err(rusqlite::Error::ToSqlConversionFailure(error.into())),
        }
    }
}

impl<T: serde::de::DeserializeOwned> FromSql for Word<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let word = value.as_str()?.to_owned();
        serde_json::from_value(word.into())
            .map(Self)
            .map_err(FromSqlError::other)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn message(role: Role, content: &str) -> ChatMessage {
        ChatMessage {
            role,
            content: content.to_owned(),
            tier: None,
            model: None,
            finish: None,
            decode_tokens_per_second: None,
            time_to_first_token_ms: None,
        }
    }

    #[test]
    fn the_kept_words_are_those_of_the_wire() {
        let database = Connection::open_in_memory().unwrap();
        let kept = |word: &dyn ToSql| {
            database.query_row("SELECT ?1", [word], |row| row.get::<_, String>(0))
        };
        assert_eq!(kept(&Word(Role::System)).unwrap(), "system");
        assert_eq!(kept(&Word(Finish::Stopped)).unwrap(), "stopped");
    }

    #[test]
    fn a_word_of_no_meaning_is_an_error() {
        let database = Connection::open_in_memory().unwrap();
        let read = database.query_row("SELECT 'wizard'", [], |row| row.get::<_, Word<Role>>(0));
        assert!(read.is_err());
    }
}

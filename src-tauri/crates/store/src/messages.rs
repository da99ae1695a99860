//! The table of messages.

use crate::word::Word;
use rusqlite::{Connection, Row, params};
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
}

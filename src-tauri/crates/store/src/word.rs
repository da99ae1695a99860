//! A closed set of words as a column.

use rusqlite::{
    ToSql,
    types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, ValueRef},
};

/// Kept as the wire spells them.
pub(crate) struct Word<T>(pub(crate) T);

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
mod tests {
    use super::*;
    use rusqlite::Connection;
    use tierbar_chats::{Finish, Role};

    #[test]
    fn stored_words_are_those_of_the_wire() {
        let database = Connection::open_in_memory().unwrap();
        let kept = |word: &dyn ToSql| {
            database.query_row("SELECT ?1", [word], |row| row.get::<_, String>(0))
        };
        assert_eq!(kept(&Word(Role::System)).unwrap(), "system");
        assert_eq!(kept(&Word(Finish::Stopped)).unwrap(), "stopped");
    }

    #[test]
    fn an_unknown_stored_word_is_an_error() {
        let database = Connection::open_in_memory().unwrap();
        let read = database.query_row("SELECT 'wizard'", [], |row| row.get::<_, Word<Role>>(0));
        assert!(read.is_err());
    }
}

//! Statements, and what columns have besides SQLite's own types.

use rusqlite::{
    Connection, OptionalExtension, Params, Row, ToSql,
    types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, ValueRef},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use tierbar_core::Error;

/// Why a query or a change came to nothing.
#[derive(Debug)]
pub(crate) enum Failure {
    Sqlite(rusqlite::Error),
    /// It cannot be, such as a change of a chat that is not there.
    Refused(Error),
}

pub(crate) type Outcome<T> = Result<T, Failure>;

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<FromSqlError> for Failure {
    fn from(error: FromSqlError) -> Self {
        Self::Sqlite(error.into())
    }
}

impl From<Error> for Failure {
    fn from(refused: Error) -> Self {
        Self::Refused(refused)
    }
}

/// Runs a statement. Returns how many rows it changed.
pub(crate) fn run(connection: &Connection, sql: &str, params: impl Params) -> Outcome<usize> {
    Ok(connection.prepare_cached(sql)?.execute(params)?)
}

pub(crate) fn one<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnOnce(&Row) -> rusqlite::Result<T>,
) -> Outcome<T> {
    Ok(connection.prepare_cached(sql)?.query_row(params, read)?)
}

/// Returns the first row of a query, if there is one.
pub(crate) fn first<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnOnce(&Row) -> rusqlite::Result<T>,
) -> Outcome<Option<T>> {
    let mut query = connection.prepare_cached(sql)?;
    Ok(query.query_row(params, read).optional()?)
}

pub(crate) fn all<T, C: FromIterator<T>>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnMut(&Row) -> rusqlite::Result<T>,
) -> Outcome<C> {
    let mut query = connection.prepare_cached(sql)?;
    let rows = query.query_map(params, read)?;
    Ok(rows.collect::<rusqlite::Result<C>>()?)
}

/// The largest count that is summed: far below the largest integer, so that a year's sums do not reach that.
const MOST_SUMMED: u64 = 1 << 50;

/// Returns a time, a size or a count as SQLite's integer, the largest of which none of them reaches.
pub(crate) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Returns a count that is summed with others.
pub(crate) fn signed_summand(value: u64) -> i64 {
    signed(value.min(MOST_SUMMED))
}

/// One of a closed set of words, kept as the wire spells it.
pub(crate) struct Word<T>(pub(crate) T);

impl<T: Serialize> ToSql for Word<T> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match serde_json::to_value(&self.0).map_err(unwritten)? {
            Value::String(word) => Ok(word.into()),
            other => Err(unwritten(format!("{other} is not a word"))),
        }
    }
}

impl<T: DeserializeOwned> FromSql for Word<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let word = value.as_str()?.to_owned();
        let word = serde_json::from_value(word.into());
        word.map(Self).map_err(FromSqlError::other)
    }
}

/// A value as JSON.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: Serialize> ToSql for Json<T> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let json = serde_json::to_string(&self.0).map_err(unwritten)?;
        Ok(json.into())
    }
}

impl<T: DeserializeOwned> FromSql for Json<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let value = serde_json::from_str(value.as_str()?);
        value.map(Self).map_err(FromSqlError::other)
    }
}

fn unwritten(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(why.into())
}

#[cfg(test)]
mod tests {
    use super::*;
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

//! The table of pieces of answers that are being written. Each write appends, so that a long answer is not written again each second.

use rusqlite::{Connection, params};
use tierbar_chats::{Part, answer_parts};

pub(crate) fn append(
    connection: &Connection,
    message: u64,
    pieces: &[Part],
) -> rusqlite::Result<()> {
    let mut insert =
        connection.prepare_cached("INSERT INTO answer_pieces (message, part) VALUES (?1, ?2)")?;
    for piece in pieces {
        let json = serde_json::to_string(piece)
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        insert.execute(params![message, json])?;
    }
    Ok(())
}

/// The parts that the pieces of a message make; none without pieces.
pub(crate) fn join_pieces(connection: &Connection, message: u64) -> rusqlite::Result<Vec<Part>> {
    let mut select = connection
        .prepare_cached("SELECT part FROM answer_pieces WHERE message = ?1 ORDER BY id")?;
    let mut rows = select.query([message])?;
    let (mut text, mut reasoning) = (String::new(), String::new());
    while let Some(row) = rows.next()? {
        let json: String = row.get(0)?;
        match serde_json::from_str(&json) {
            Ok(Part::Text { text: more }) => text.push_str(&more),
            Ok(Part::Reasoning { text: more }) => reasoning.push_str(&more),
            // A turn writes no others.
            Ok(_) => {}
            Err(error) => {
                let kind = rusqlite::types::Type::Text;
                return Err(rusqlite::Error::FromSqlConversionFailure(
                    0,
                    kind,
                    error.into(),
                ));
            }
        }
    }
    Ok(answer_parts(text, reasoning))
}

pub(crate) fn remove(connection: &Connection, message: u64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM answer_pieces WHERE message = ?1")?
        .execute([message])?;
    Ok(())
}

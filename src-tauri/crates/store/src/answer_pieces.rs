//! The table of pieces of answers that are being written. Each write appends, so that a long answer is not written again each second.

use crate::sql::{self, Json, Outcome};
use rusqlite::{Connection, params};
use tierbar_chats::{Part, answer_parts};

pub(crate) fn append(connection: &Connection, message: u64, pieces: &[Part]) -> Outcome<()> {
    let insert = "INSERT INTO answer_pieces (message, part) VALUES (?1, ?2)";
    for piece in pieces {
        sql::run(connection, insert, params![message, Json(piece)])?;
    }
    Ok(())
}

/// The parts that the pieces of a message make; none without pieces.
pub(crate) fn join_pieces(connection: &Connection, message: u64) -> Outcome<Vec<Part>> {
    let select = "SELECT part FROM answer_pieces WHERE message = ?1 ORDER BY id";
    let mut select = connection.prepare_cached(select)?;
    let mut rows = select.query([message])?;
    let (mut text, mut reasoning) = (String::new(), String::new());
    while let Some(row) = rows.next()? {
        match row.get::<_, Json<Part>>(0)?.0 {
            Part::Text { text: more } => text.push_str(&more),
            Part::Reasoning { text: more } => reasoning.push_str(&more),
            // A turn writes no others.
            _ => {}
        }
    }
    Ok(answer_parts(text, reasoning))
}

pub(crate) fn remove(connection: &Connection, message: u64) -> Outcome<usize> {
    sql::run(
        connection,
        "DELETE FROM answer_pieces WHERE message = ?1",
        [message],
    )
}

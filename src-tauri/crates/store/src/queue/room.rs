//! Limits of size and time.

use super::Room;
use crate::sql::{self, Outcome, signed};
use rusqlite::{Connection, params};
use tierbar_core::{Code, Error};

/// How many are removed per change; the rest follows.
const AT_ONCE: u32 = 500;
/// Ended, fetched, and without a pending webhook.
const MAY_LEAVE: &str = "ended_ms IS NOT NULL AND told = 1 AND webhook_due_ms IS NULL";

/// Makes room for a request.
///
/// # Errors
/// `Overloaded` if there is none.
pub(super) fn make_room(
    connection: &Connection,
    room: Room,
    owner: Option<&str>,
    size: u64,
) -> Outcome<()> {
    let full =
        |message: String, hint: &str| Err(Error::new(Code::Overloaded, message).hint(hint).into());
    let later = "try again when some of them are done";
    let all = "SELECT count(*) FROM jobs WHERE state IN ('waiting', 'running')";
    let live: u64 = sql::one(connection, all, [], |row| row.get(0))?;
    if live >= room.live {
        return full(
            format!("the queue is full: {live} requests are waiting"),
            later,
        );
    }
    if let Some(owner) = owner {
        let own = format!("{all} AND owner = ?1");
        let own: u64 = sql::one(connection, &own, [owner], |row| row.get(0))?;
        if own >= room.of_one_key {
            let most = room.of_one_key;
            let message = format!(
                "this API key already has {most} requests in the queue, which is its limit"
            );
            return full(message, later);
        }
    }
    let taken = leave_for(connection, room, size)?;
    if taken.saturating_add(size) > room.bytes {
        let (taken, most) = (taken >> 20, room.bytes >> 20);
        return full(
            format!("the queue's requests and answers use {taken} of {most} MiB"),
            "fetch the answers, which makes room, or raise queue.bytes in config.toml",
        );
    }
    Ok(())
}

/// Returns whether there is room for another answer. Both the size of answers and their number at the same time are
/// limited.
pub(super) fn for_answer(connection: &Connection, room: Room) -> Outcome<bool> {
    Ok(leave_for(connection, room, 0)? <= room.bytes)
}

/// Deletes fetched answers, oldest first, until there is room or none is left. Returns the bytes then used.
fn leave_for(connection: &Connection, room: Room, size: u64) -> Outcome<u64> {
    let oldest = format!("SELECT seq, size FROM jobs WHERE {MAY_LEAVE} ORDER BY ended_ms LIMIT 1");
    let mut taken = bytes(connection)?;
    while taken.saturating_add(size) > room.bytes {
        let oldest: Option<(i64, u64)> = sql::first(connection, &oldest, [], |row| row.try_into())?;
        let Some((seq, size)) = oldest else {
            break;
        };
        sql::run(connection, "DELETE FROM jobs WHERE seq = ?1", [seq])?;
        taken = taken.saturating_sub(size);
    }
    Ok(taken)
}

pub(super) fn bytes(connection: &Connection) -> Outcome<u64> {
    let sum = "SELECT coalesce(sum(size), 0) FROM jobs";
    sql::one(connection, sum, [], |row| row.get(0))
}

pub(super) fn needs_sweep(connection: &Connection, keep_ms: u64, now_ms: u64) -> Outcome<bool> {
    sql::one(
        connection,
        "SELECT EXISTS (SELECT 1 FROM jobs WHERE state = 'waiting' AND deadline_ms <= ?1)
         OR EXISTS (SELECT 1 FROM jobs WHERE ended_ms <= ?2)",
        [signed(now_ms), signed(now_ms.saturating_sub(keep_ms))],
        |row| row.get(0),
    )
}

/// Deletes expired answers. A pending webhook does not outlive its answer: it is given up after a day, or with it.
pub(super) fn sweep(connection: &Connection, keep_ms: u64, now_ms: u64) -> Outcome<usize> {
    sql::run(
        connection,
        "DELETE FROM jobs WHERE seq IN (SELECT seq FROM jobs WHERE ended_ms <= ?1 ORDER BY ended_ms LIMIT ?2)",
        params![signed(now_ms.saturating_sub(keep_ms)), AT_ONCE],
    )
}

pub(super) fn next_ms(
    connection: &Connection,
    keep_ms: u64,
    attempts: bool,
) -> Outcome<Option<u64>> {
    let first =
        |query: &str| -> Outcome<Option<u64>> { sql::one(connection, query, [], |row| row.get(0)) };
    let due = match attempts {
        true => first("SELECT min(not_before_ms) FROM jobs WHERE state = 'waiting'")?,
        false => None,
    };
    let deadline = first("SELECT min(deadline_ms) FROM jobs WHERE state = 'waiting'")?;
    let ended = first("SELECT min(ended_ms) FROM jobs WHERE ended_ms IS NOT NULL")?;
    let swept = ended.map(|ended| ended.saturating_add(keep_ms));
    Ok([due, deadline, swept].into_iter().flatten().min())
}

//! Limits of size and time.

use super::{Room, signed};
use rusqlite::{Connection, OptionalExtension, params};
use tierbar_core::{Code, Error};

/// How many are removed per change; the rest follows.
const AT_ONCE: u32 = 500;
/// Ended, fetched, and without a pending webhook.
const MAY_LEAVE: &str = "ended_ms IS NOT NULL AND told = 1 AND webhook_due_ms IS NULL";

/// Makes room for a request.
pub(super) fn make_room(
    connection: &Connection,
    room: Room,
    owner: Option<&str>,
    size: u64,
) -> rusqlite::Result<Result<(), Error>> {
    let full = |message| {
        Err(Error::new(Code::Overloaded, message).hint("try again when some of them are done"))
    };
    let live = count_live(connection, None)?;
    if live >= room.live {
        let message = format!("the queue is full: {live} requests are waiting");
        return Ok(full(message));
    }
    if owner.is_some() && self::count_live(connection, owner)? >= room.of_one_key {
        let most = room.of_one_key;
        let message =
            format!("this API key already has {most} requests in the queue, which is its limit");
        return Ok(full(message));
    }
    let taken = leave_for(connection, room, size)?;
    if taken.saturating_add(size) > room.bytes {
        let mib = |bytes: u64| bytes >> 20;
        let message = format!(
            "the queue's requests and answers use {} of {} MiB",
            mib(taken),
            mib(room.bytes)
        );
        return Ok(Err(Error::new(Code::Overloaded, message).hint(
            "fetch the answers, which makes room, or raise queue.bytes in config.toml",
        )));
    }
    Ok(Ok(()))
}

/// Counts requests that have not ended: all, or those of one key.
fn count_live(connection: &Connection, owner: Option<&str>) -> rusqlite::Result<u64> {
    let count = |row: &rusqlite::Row| Ok(row.get::<_, i64>(0)?.unsigned_abs());
    let all = "SELECT count(*) FROM jobs WHERE state IN ('waiting', 'running')";
    match owner {
        None => connection.prepare_cached(all)?.query_row([], count),
        Some(owner) => connection
            .prepare_cached(&format!("{all} AND owner = ?1"))?
            .query_row([owner], count),
    }
}

/// Returns whether there is room for another answer. Both the size of answers and their number at the same time are
/// limited.
pub(super) fn for_answer(connection: &Connection, room: Room) -> rusqlite::Result<bool> {
    Ok(leave_for(connection, room, 0)? <= room.bytes)
}

/// Deletes fetched answers, oldest first, until there is room or none is left. Returns the bytes then used.
fn leave_for(connection: &Connection, room: Room, size: u64) -> rusqlite::Result<u64> {
    let mut taken = bytes(connection)?;
    while taken.saturating_add(size) > room.bytes {
        let oldest: Option<(i64, i64)> = connection
            .prepare_cached(&format!(
                "SELECT seq, size FROM jobs WHERE {MAY_LEAVE} ORDER BY ended_ms LIMIT 1"
            ))?
            .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let Some((seq, size)) = oldest else {
            break;
        };
        connection
            .prepare_cached("DELETE FROM jobs WHERE seq = ?1")?
            .execute([seq])?;
        taken = taken.saturating_sub(size.unsigned_abs());
    }
    Ok(taken)
}

pub(super) fn bytes(connection: &Connection) -> rusqlite::Result<u64> {
    connection
        .prepare_cached("SELECT coalesce(sum(size), 0) FROM jobs")?
        .query_row([], |row| Ok(row.get::<_, i64>(0)?.unsigned_abs()))
}

pub(super) fn needs_sweep(
    connection: &Connection,
    keep_ms: u64,
    now_ms: u64,
) -> rusqlite::Result<bool> {
    connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM jobs WHERE state = 'waiting' AND deadline_ms <= ?1)
             OR EXISTS (SELECT 1 FROM jobs WHERE ended_ms <= ?2)",
        )?
        .query_row(
            [signed(now_ms), signed(now_ms.saturating_sub(keep_ms))],
            |row| row.get(0),
        )
}

/// Deletes expired answers. A pending webhook does not outlive its answer: it is given up after a day, or with it.
pub(super) fn sweep(connection: &Connection, keep_ms: u64, now_ms: u64) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "DELETE FROM jobs WHERE seq IN (SELECT seq FROM jobs WHERE ended_ms <= ?1 ORDER BY ended_ms LIMIT ?2)",
        )?
        .execute(params![signed(now_ms.saturating_sub(keep_ms)), AT_ONCE])?;
    Ok(())
}

pub(super) fn next_ms(
    connection: &Connection,
    keep_ms: u64,
    attempts: bool,
) -> rusqlite::Result<Option<u64>> {
    let first = |query: &str| -> rusqlite::Result<Option<u64>> {
        let found: Option<i64> = connection
            .prepare_cached(query)?
            .query_row([], |row| row.get(0))?;
        Ok(found.map(i64::unsigned_abs))
    };
    let due = match attempts {
        true => first("SELECT min(not_before_ms) FROM jobs WHERE state = 'waiting'")?,
        false => None,
    };
    let deadline = first("SELECT min(deadline_ms) FROM jobs WHERE state = 'waiting'")?;
    let ended = first("SELECT min(ended_ms) FROM jobs WHERE ended_ms IS NOT NULL")?;
    let swept = ended.map(|ended| ended.saturating_add(keep_ms));
    Ok([due, deadline, swept].into_iter().flatten().min())
}

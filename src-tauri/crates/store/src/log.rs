//! The table of the event log.

use crate::word::Word;
use rusqlite::{Connection, Row, params};
use tierbar_core::{
    ModelId, TierId,
    journal::{Entry, Kind, LogEvent},
};

/// How long entries are kept,
const KEPT_MS: u64 = 30 * 24 * 3600 * 1000;
/// and how many.
const KEPT: u64 = 50_000;
/// How many old entries are deleted with each new one: see the minutes' table.
const DROPPED_AT_ONCE: u32 = 8;
const COLUMNS: &str = "id, at_ms, kind, tier, model, sentence";

/// Adds entries; their ids must be larger than the existing ones.
pub(crate) fn add(connection: &Connection, entries: &[Entry]) -> rusqlite::Result<()> {
    let Some(last) = entries.last() else {
        return Ok(());
    };
    let mut insert = connection.prepare_cached(&format!(
        "INSERT INTO log ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"
    ))?;
    for Entry { id, at_ms, what } in entries {
        insert.execute(params![
            signed(*id),
            signed(*at_ms),
            Word(what.kind),
            what.tier.as_ref().map(TierId::as_str),
            what.model.as_ref().map(ModelId::as_str),
            what.sentence,
        ])?;
    }
    let count = u32::try_from(entries.len()).unwrap_or(u32::MAX);
    connection
        .prepare_cached(
            "DELETE FROM log WHERE id IN (SELECT id FROM log WHERE at_ms < ?1 ORDER BY at_ms LIMIT ?2)",
        )?
        .execute(params![
            signed(last.at_ms.saturating_sub(KEPT_MS)),
            DROPPED_AT_ONCE.saturating_mul(count)
        ])?;
    connection
        .prepare_cached("DELETE FROM log WHERE id <= ?1")?
        .execute([signed(last.id.saturating_sub(KEPT))])?;
    Ok(())
}

/// Returns entries before `before`, newest first.
pub(crate) fn before(
    connection: &Connection,
    before: Option<u64>,
    tier: Option<&TierId>,
    limit: u32,
) -> rusqlite::Result<Vec<Entry>> {
    let before = before.map_or(i64::MAX, signed);
    match tier {
        None => connection
            .prepare_cached(&format!(
                "SELECT {COLUMNS} FROM log WHERE id < ?1 ORDER BY id DESC LIMIT ?2"
            ))?
            .query_map(params![before, limit], entry)?
            .collect(),
        Some(tier) => connection
            .prepare_cached(&format!(
                "SELECT {COLUMNS} FROM log WHERE tier = ?3 AND id < ?1 ORDER BY id DESC LIMIT ?2"
            ))?
            .query_map(params![before, limit, tier.as_str()], entry)?
            .collect(),
    }
}

/// Returns the largest id.
pub(crate) fn last(connection: &Connection) -> rusqlite::Result<u64> {
    let last: Option<i64> =
        connection.query_row("SELECT max(id) FROM log", [], |row| row.get(0))?;
    Ok(last.unwrap_or(0).unsigned_abs())
}

fn entry(row: &Row) -> rusqlite::Result<Entry> {
    let tier: Option<String> = row.get(3)?;
    Ok(Entry {
        id: row.get::<_, i64>(0)?.unsigned_abs(),
        at_ms: row.get::<_, i64>(1)?.unsigned_abs(),
        what: LogEvent {
            // A newer version may have had a word for it.
            kind: row
                .get::<_, Word<_>>(2)
                .map_or(Kind::Note, |kind: Word<Kind>| kind.0),
            tier: tier.and_then(|tier| TierId::new(tier).ok()),
            model: row.get::<_, Option<String>>(4)?.map(ModelId),
            sentence: row.get(5)?,
        },
    })
}

/// SQLite's integers have a sign; no time and no id reaches it.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

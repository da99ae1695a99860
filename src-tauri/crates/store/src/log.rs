//! The table of the event log.

use crate::integer::signed;
use crate::word::Word;
use rusqlite::{Connection, Row, params, params_from_iter, types::Value};
use tierbar_core::{
    ModelId, TierId,
    journal::{Entry, Filter, Kind, LogEvent},
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
pub(crate) fn entries_before(
    connection: &Connection,
    before: Option<u64>,
    filter: &Filter,
    limit: u32,
) -> rusqlite::Result<Vec<Entry>> {
    let mut query = format!("SELECT {COLUMNS} FROM log WHERE id < ?");
    let mut values = vec![Value::from(before.map_or(i64::MAX, signed))];
    if let Some(tier) = &filter.tier {
        query.push_str(" AND tier = ?");
        values.push(Value::from(tier.as_str().to_owned()));
    }
    if let Some(kind) = filter.kind {
        query.push_str(" AND kind = ?");
        values.push(Value::from(kind.as_str().to_owned()));
    }
    for word in filter.words() {
        query.push_str(" AND instr(lower(sentence), ?) > 0");
        values.push(Value::from(word.clone()));
    }
    query.push_str(" ORDER BY id DESC LIMIT ?");
    values.push(Value::from(i64::from(limit)));
    connection
        .prepare_cached(&query)?
        .query_map(params_from_iter(values), entry)?
        .collect()
}

/// Adds an entry of the machine.
pub(crate) fn add_note(connection: &Connection, sentence: String) -> rusqlite::Result<()> {
    append(connection, vec![LogEvent::new(Kind::Note, sentence)])
}

/// Adds an end for each worker whose last entry is a load: its host was killed, or the machine stopped, and no worker outlives its host.
/// Call it before a worker is started.
pub(crate) fn end_loads(
    connection: &Connection,
    sentence: fn(&TierId) -> String,
) -> rusqlite::Result<()> {
    let last: Vec<Entry> = connection
        .prepare(&format!(
            "SELECT {COLUMNS} FROM log WHERE id IN (SELECT max(id) FROM log WHERE tier IS NOT NULL
             AND kind IN ('load', 'ready', 'unload', 'failure', 'crash') GROUP BY tier) ORDER BY id"
        ))?
        .query_map([], entry)?
        .collect::<Result<_, _>>()?;
    let loaded = last
        .into_iter()
        .filter(|entry| matches!(entry.what.kind, Kind::Load | Kind::Ready));
    let ends = loaded.filter_map(|Entry { what, .. }| {
        let tier = what.tier?;
        let sentence = sentence(&tier);
        Some(LogEvent::of(
            Kind::Unload,
            &tier,
            what.model.as_ref(),
            sentence,
        ))
    });
    append(connection, ends.collect())
}

/// Adds events of now.
fn append(connection: &Connection, events: Vec<LogEvent>) -> rusqlite::Result<()> {
    let at_ms = u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or_default();
    let first = last_id(connection)? + 1;
    let numbered = (first..).zip(events);
    let entries: Vec<_> = numbered
        .map(|(id, what)| Entry { id, at_ms, what })
        .collect();
    add(connection, &entries)
}

/// Returns the largest id.
pub(crate) fn last_id(connection: &Connection) -> rusqlite::Result<u64> {
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

//! The table of the event log.

use crate::{
    Store,
    sql::{self, Outcome, Word, signed},
};
use rusqlite::{Connection, Row, params, params_from_iter, types::Value};
use tierbar_core::{
    Error, ModelId, TierId,
    journal::{Entry, Filter, Kind, LogEvent},
};

/// How long entries are kept,
const KEPT_MS: u64 = 30 * 24 * 3600 * 1000;
/// and how many.
const KEPT: u64 = 50_000;
/// How many old entries are deleted with each new one: see the minutes' table.
const DROPPED_AT_ONCE: u32 = 8;
const COLUMNS: &str = "id, at_ms, kind, tier, model, sentence";

impl Store {
    /// Stores log entries for 30 days, and at most the last 50,000. Their ids must increase.
    pub async fn add_entries(&self, entries: Vec<Entry>) -> Result<(), Error> {
        self.write(move |change| add(change, &entries)).await
    }

    /// Returns the last `limit` entries before the one with the id `before`, newest first.
    pub async fn entries(
        &self,
        before: Option<u64>,
        filter: Filter,
        limit: u32,
    ) -> Result<Vec<Entry>, Error> {
        let mut query = format!("SELECT {COLUMNS} FROM log WHERE id < ?");
        let mut values = vec![Value::from(before.map_or(i64::MAX, signed))];
        if let Some(tier) = &filter.tier {
            query.push_str(" AND tier = ?");
            values.push(tier.as_str().to_owned().into());
        }
        if let Some(kind) = filter.kind {
            query.push_str(" AND kind = ?");
            values.push(kind.as_str().to_owned().into());
        }
        for word in filter.words() {
            query.push_str(" AND instr(lower(sentence), ?) > 0");
            values.push(word.clone().into());
        }
        query.push_str(" ORDER BY id DESC LIMIT ?");
        values.push(limit.into());
        self.all(query, params_from_iter(values), entry).await
    }

    /// Returns the id of the log's last entry; 0 without entries.
    pub async fn last_entry(&self) -> Result<u64, Error> {
        self.read(last_id).await
    }

    /// Records an end for each worker whose last entry in the event log is a load: its host was killed, or the machine stopped, and no
    /// worker outlives its host. Call it before a worker is started. `sentence`: of a tier's end.
    pub async fn end_loads(&self, sentence: fn(&TierId) -> String) -> Result<(), Error> {
        self.write(move |connection| end_loads(connection, sentence))
            .await
    }
}

fn add(connection: &Connection, entries: &[Entry]) -> Outcome<()> {
    let Some(last) = entries.last() else {
        return Ok(());
    };
    for Entry { id, at_ms, what } in entries {
        sql::run(
            connection,
            &format!("INSERT INTO log ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"),
            params![
                signed(*id),
                signed(*at_ms),
                Word(what.kind),
                what.tier.as_ref().map(TierId::as_str),
                what.model.as_ref().map(ModelId::as_str),
                what.sentence,
            ],
        )?;
    }
    let count = u32::try_from(entries.len()).unwrap_or(u32::MAX);
    sql::run(
        connection,
        "DELETE FROM log WHERE id IN (SELECT id FROM log WHERE at_ms < ?1 ORDER BY at_ms LIMIT ?2)",
        params![
            signed(last.at_ms.saturating_sub(KEPT_MS)),
            DROPPED_AT_ONCE.saturating_mul(count)
        ],
    )?;
    let too_old = signed(last.id.saturating_sub(KEPT));
    sql::run(connection, "DELETE FROM log WHERE id <= ?1", [too_old])?;
    Ok(())
}

fn end_loads(connection: &Connection, sentence: fn(&TierId) -> String) -> Outcome<()> {
    let last: Vec<Entry> = sql::all(
        connection,
        &format!(
            "SELECT {COLUMNS} FROM log WHERE id IN (SELECT max(id) FROM log WHERE tier IS NOT NULL
             AND kind IN ('load', 'ready', 'unload', 'failure', 'crash') GROUP BY tier) ORDER BY id"
        ),
        [],
        entry,
    )?;
    let loaded = last
        .into_iter()
        .filter(|entry| matches!(entry.what.kind, Kind::Load | Kind::Ready));
    let ends = loaded.filter_map(|Entry { what, .. }| {
        let tier = what.tier?;
        let (model, sentence) = (what.model.as_ref(), sentence(&tier));
        Some(LogEvent::for_tier(Kind::Unload, &tier, model, sentence))
    });
    append(connection, ends)
}

/// Adds events of now.
pub(crate) fn append(
    connection: &Connection,
    events: impl IntoIterator<Item = LogEvent>,
) -> Outcome<()> {
    let at_ms = u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or_default();
    let first = last_id(connection)? + 1;
    let numbered = (first..).zip(events);
    let entries: Vec<_> = numbered
        .map(|(id, what)| Entry { id, at_ms, what })
        .collect();
    add(connection, &entries)
}

fn last_id(connection: &Connection) -> Outcome<u64> {
    let last = "SELECT coalesce(max(id), 0) FROM log";
    sql::one(connection, last, [], |row| row.get(0))
}

fn entry(row: &Row) -> rusqlite::Result<Entry> {
    let tier: Option<String> = row.get(3)?;
    Ok(Entry {
        id: row.get(0)?,
        at_ms: row.get(1)?,
        what: LogEvent {
            // A newer version may have had a word for it.
            kind: row.get(2).map_or(Kind::Note, |Word(kind)| kind),
            tier: tier.and_then(|tier| TierId::new(tier).ok()),
            model: row.get::<_, Option<String>>(4)?.map(ModelId),
            sentence: row.get(5)?,
        },
    })
}

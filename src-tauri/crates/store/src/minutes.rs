//! The table of minutes of readings.

use crate::{
    Store,
    sql::{self, Outcome, Word, signed},
};
use rusqlite::{Connection, Row, params};
use tierbar_core::{
    Error,
    history::{Point, Spread, merge_points},
};

const KEPT_SECONDS: u64 = 30 * 24 * 3600;
/// How many old minutes are deleted with each new one. So a clock that is a year ahead for a minute deletes an hour of
/// minutes, and not all.
const DROPPED_AT_ONCE: u32 = 60;
/// The table has others, of figures that were kept once.
const COLUMNS: &str =
    "at, samples, pressure, ram_total_bytes, ram_used_mean, ram_used_max, swap_used_mean,
    swap_used_max, disk_read_mean, disk_read_max, models_mean, models_max, decode_mean, decode_max";

impl Store {
    /// Stores a minute of readings for 30 days. It is merged with an existing one.
    pub async fn add_minute(&self, minute: Point) -> Result<(), Error> {
        self.write(move |change| add(change, &minute)).await
    }

    /// Returns the minutes that start from `from` on and before `to`, in seconds since 1970, oldest first.
    pub async fn minutes(&self, from: u64, to: u64) -> Result<Vec<Point>, Error> {
        let select =
            format!("SELECT {COLUMNS} FROM minutes WHERE at >= ?1 AND at < ?2 ORDER BY at");
        self.all(select, [signed(from), signed(to)], point).await
    }
}

/// An existing minute has another part of the same minute, after a restart or a clock set back.
fn add(connection: &Connection, minute: &Point) -> Outcome<()> {
    let before = format!("SELECT {COLUMNS} FROM minutes WHERE at = ?1");
    let before = sql::first(connection, &before, [signed(minute.at)], point)?;
    let minute = match &before {
        Some(before) => &merge_points(minute.at, &[before, minute]),
        None => minute,
    };
    let mean = |spread: Option<Spread>| spread.map(|spread| spread.mean);
    let max = |spread: Option<Spread>| spread.map(|spread| spread.max);
    sql::run(
        connection,
        &format!(
            "INSERT OR REPLACE INTO minutes ({COLUMNS})
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)"
        ),
        params![
            signed(minute.at),
            minute.samples,
            minute.pressure.map(Word),
            minute.ram_total_bytes.map(signed),
            mean(minute.ram_used_bytes),
            max(minute.ram_used_bytes),
            mean(minute.swap_used_bytes),
            max(minute.swap_used_bytes),
            mean(minute.disk_read_bytes_per_second),
            max(minute.disk_read_bytes_per_second),
            mean(minute.models_bytes),
            max(minute.models_bytes),
            mean(minute.decode_tokens_per_second),
            max(minute.decode_tokens_per_second),
        ],
    )?;
    let oldest = signed(minute.at.saturating_sub(KEPT_SECONDS));
    sql::run(
        connection,
        "DELETE FROM minutes WHERE at IN (SELECT at FROM minutes WHERE at < ?1 ORDER BY at LIMIT ?2)",
        params![oldest, DROPPED_AT_ONCE],
    )?;
    Ok(())
}

fn point(row: &Row) -> rusqlite::Result<Point> {
    let spread = |at: usize| -> rusqlite::Result<Option<Spread>> {
        let (mean, max): (Option<f64>, Option<f64>) = (row.get(at)?, row.get(at + 1)?);
        Ok(mean.zip(max).map(|(mean, max)| Spread { mean, max }))
    };
    Ok(Point {
        at: row.get(0)?,
        samples: row.get(1)?,
        pressure: row.get::<_, Option<Word<_>>>(2)?.map(|word| word.0),
        ram_total_bytes: row.get(3)?,
        ram_used_bytes: spread(4)?,
        swap_used_bytes: spread(6)?,
        disk_read_bytes_per_second: spread(8)?,
        models_bytes: spread(10)?,
        decode_tokens_per_second: spread(12)?,
    })
}

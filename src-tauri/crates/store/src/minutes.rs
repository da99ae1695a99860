//! The table of minutes of readings.

use crate::integer::signed;
use crate::word::Word;
use rusqlite::{Connection, OptionalExtension, Row, params};
use tierbar_core::history::{Point, Spread, merge_points};

/// How long minutes are kept.
const KEPT_SECONDS: u64 = 30 * 24 * 3600;
/// How many old minutes are deleted with each new one. So a clock that is a year ahead for a minute deletes an hour of
/// minutes, and not all.
const DROPPED_AT_ONCE: u32 = 60;
const COLUMNS: &str = "at, samples, pressure, ram_total_bytes, ram_used_mean, ram_used_max, swap_used_mean,
    swap_used_max, swap_in_mean, swap_in_max, swap_out_mean, swap_out_max, cpu_mean, cpu_max, disk_read_mean,
    disk_read_max, temperature_mean, temperature_max, models_mean, models_max, decode_mean, decode_max";

/// Adds a minute. An existing one has another part of the same minute, after a restart or a clock set back.
pub(crate) fn add(connection: &Connection, minute: &Point) -> rusqlite::Result<()> {
    let before = connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM minutes WHERE at = ?1"))?
        .query_row([signed(minute.at)], point)
        .optional()?;
    let minute = match &before {
        Some(before) => &merge_points(minute.at, &[before, minute]),
        None => minute,
    };
    let mean = |spread: Option<Spread>| spread.map(|spread| spread.mean);
    let max = |spread: Option<Spread>| spread.map(|spread| spread.max);
    connection
        .prepare_cached(&format!(
            "INSERT OR REPLACE INTO minutes ({COLUMNS})
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,
             ?19, ?20, ?21, ?22)"
        ))?
        .execute(params![
            signed(minute.at),
            minute.samples,
            minute.pressure.map(Word),
            minute.ram_total_bytes.map(signed),
            mean(minute.ram_used_bytes),
            max(minute.ram_used_bytes),
            mean(minute.swap_used_bytes),
            max(minute.swap_used_bytes),
            mean(minute.swap_in_bytes_per_second),
            max(minute.swap_in_bytes_per_second),
            mean(minute.swap_out_bytes_per_second),
            max(minute.swap_out_bytes_per_second),
            mean(minute.cpu_percent),
            max(minute.cpu_percent),
            mean(minute.disk_read_bytes_per_second),
            max(minute.disk_read_bytes_per_second),
            mean(minute.temperature_celsius),
            max(minute.temperature_celsius),
            mean(minute.models_bytes),
            max(minute.models_bytes),
            mean(minute.decode_tokens_per_second),
            max(minute.decode_tokens_per_second),
        ])?;
    connection
        .prepare_cached(
            "DELETE FROM minutes WHERE at IN (SELECT at FROM minutes WHERE at < ?1 ORDER BY at LIMIT ?2)",
        )?
        .execute(params![
            signed(minute.at.saturating_sub(KEPT_SECONDS)),
            DROPPED_AT_ONCE
        ])?;
    Ok(())
}

/// Returns the minutes that start from `from` on and before `to`, oldest first.
pub(crate) fn minutes_between(
    connection: &Connection,
    from: u64,
    to: u64,
) -> rusqlite::Result<Vec<Point>> {
    connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM minutes WHERE at >= ?1 AND at < ?2 ORDER BY at"
        ))?
        .query_map([signed(from), signed(to)], point)?
        .collect()
}

fn point(row: &Row) -> rusqlite::Result<Point> {
    let spread = |at: usize| -> rusqlite::Result<Option<Spread>> {
        let (mean, max): (Option<f64>, Option<f64>) = (row.get(at)?, row.get(at + 1)?);
        Ok(mean.zip(max).map(|(mean, max)| Spread { mean, max }))
    };
    Ok(Point {
        at: row.get::<_, i64>(0)?.unsigned_abs(),
        samples: row.get(1)?,
        pressure: row.get::<_, Option<Word<_>>>(2)?.map(|word| word.0),
        ram_total_bytes: row.get::<_, Option<i64>>(3)?.map(i64::unsigned_abs),
        ram_used_bytes: spread(4)?,
        swap_used_bytes: spread(6)?,
        swap_in_bytes_per_second: spread(8)?,
        swap_out_bytes_per_second: spread(10)?,
        cpu_percent: spread(12)?,
        disk_read_bytes_per_second: spread(14)?,
        temperature_celsius: spread(16)?,
        models_bytes: spread(18)?,
        decode_tokens_per_second: spread(20)?,
    })
}

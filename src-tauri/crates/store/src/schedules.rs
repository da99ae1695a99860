//! The table of schedules: how far each has come.

use rusqlite::{Connection, OptionalExtension, Row, params};
use tierbar_core::schedule::Run;

/// A schedule that is configured no more is forgotten with another's change, so long after it last ran.
const KEPT_SECONDS: i64 = 366 * 24 * 3600;
const COLUMNS: &str = "turn, attempts, finished, tried_at, covers_to, outcome, failing";

pub(crate) fn put(connection: &Connection, name: &str, run: &Run) -> rusqlite::Result<()> {
    connection
        .prepare_cached(&format!(
            "INSERT OR REPLACE INTO schedules (name, {COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
        ))?
        .execute(params![
            name,
            run.turn,
            run.attempts,
            run.finished,
            run.tried_at,
            run.covers_to,
            run.outcome,
            run.failing,
        ])?;
    connection
        .prepare_cached("DELETE FROM schedules WHERE turn < ?1")?
        .execute([run.turn.saturating_sub(KEPT_SECONDS)])?;
    Ok(())
}

pub(crate) fn get(connection: &Connection, name: &str) -> rusqlite::Result<Option<Run>> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM schedules WHERE name = ?1"))?
        .query_row([name], run)
        .optional()
}

fn run(row: &Row) -> rusqlite::Result<Run> {
    Ok(Run {
        turn: row.get(0)?,
        attempts: row.get(1)?,
        finished: row.get(2)?,
        tried_at: row.get(3)?,
        covers_to: row.get(4)?,
        outcome: row.get(5)?,
        failing: row.get(6)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Database;

    #[test]
    fn schedule_progress_reads_back_and_old_rows_are_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(&folder.path().join("tierbar.db")).unwrap();
        let first = Run {
            turn: 1_790_000_000,
            attempts: 2,
            finished: true,
            tried_at: Some(1_790_000_009),
            covers_to: Some(1_790_000_001),
            outcome: Some("wrote /tmp/a.md".to_owned()),
            failing: true,
        };
        let later = Run::first_seen(1_790_000_000 + KEPT_SECONDS + 1);
        let read = |name: &'static str| database.read(|at| get(at, name)).unwrap();
        database.write(|at| put(at, "a", &first)).unwrap();
        assert_eq!(read("a"), Some(first));
        assert_eq!(read("b"), None);
        database.write(|at| put(at, "b", &later)).unwrap();
        assert_eq!((read("a"), read("b")), (None, Some(later)));
    }
}

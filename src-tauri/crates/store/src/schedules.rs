//! The table of schedules: how far each has come.

use crate::{Store, sql};
use rusqlite::{Row, params};
use tierbar_core::{Error, schedule::Run};

/// A schedule that is configured no more is forgotten with another's change, so long after it last ran.
const KEPT_SECONDS: i64 = 366 * 24 * 3600;
const COLUMNS: &str = "turn, attempts, finished, tried_at, covers_to, outcome, failing";

impl Store {
    /// Returns the progress of a schedule; `None` for a new one.
    pub async fn schedule_run(&self, name: &str) -> Result<Option<Run>, Error> {
        let name = name.to_owned();
        let select = format!("SELECT {COLUMNS} FROM schedules WHERE name = ?1");
        self.read(move |connection| sql::first(connection, &select, [name], run))
            .await
    }

    pub async fn put_schedule_run(&self, name: &str, run: Run) -> Result<(), Error> {
        let name = name.to_owned();
        self.write(move |change| {
            sql::run(
                change,
                &format!("INSERT OR REPLACE INTO schedules (name, {COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"),
                params![
                    name,
                    run.turn,
                    run.attempts,
                    run.finished,
                    run.tried_at,
                    run.covers_to,
                    run.outcome,
                    run.failing,
                ],
            )?;
            let oldest = run.turn.saturating_sub(KEPT_SECONDS);
            sql::run(change, "DELETE FROM schedules WHERE turn < ?1", [oldest])?;
            Ok(())
        })
        .await
    }
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

    #[tokio::test]
    async fn schedule_progress_reads_back_and_old_rows_are_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("tierbar.db")).unwrap();
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
        let read = async |name: &str| store.schedule_run(name).await.unwrap();
        store.put_schedule_run("a", first.clone()).await.unwrap();
        assert_eq!(read("a").await, Some(first));
        assert_eq!(read("b").await, None);
        store.put_schedule_run("b", later.clone()).await.unwrap();
        assert_eq!((read("a").await, read("b").await), (None, Some(later)));
    }
}

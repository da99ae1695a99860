//! The table of the tokens that tasks used and saved, by day.

use crate::sql::{self, Outcome, Word, signed_summand};
use jiff::civil::Date;
use rusqlite::{Connection, params};
use std::collections::BTreeMap;
use tierbar_tasks::{
    Task,
    saved::{Day, TaskSavings},
};

const KEPT: i64 = 366;
/// How many old rows are deleted with each new one: see the minutes' table.
const DROPPED_AT_ONCE: u32 = 8;

pub(crate) fn add(
    connection: &Connection,
    today: Date,
    task: Task,
    spent: TaskSavings,
) -> Outcome<()> {
    sql::run(
        connection,
        "INSERT INTO savings (day, task, answers, prompt_tokens, completion_tokens, saved_tokens)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (day, task) DO UPDATE SET
             answers = answers + excluded.answers,
             prompt_tokens = prompt_tokens + excluded.prompt_tokens,
             completion_tokens = completion_tokens + excluded.completion_tokens,
             saved_tokens = saved_tokens + excluded.saved_tokens",
        params![
            today.to_string(),
            Word(task),
            signed_summand(spent.answers),
            signed_summand(spent.prompt_tokens),
            signed_summand(spent.completion_tokens),
            signed_summand(spent.saved_tokens),
        ],
    )?;
    let oldest = today.saturating_sub(jiff::Span::new().days(KEPT));
    sql::run(
        connection,
        "DELETE FROM savings WHERE (day, task) IN
             (SELECT day, task FROM savings WHERE day < ?1 ORDER BY day LIMIT ?2)",
        params![oldest.to_string(), DROPPED_AT_ONCE],
    )?;
    Ok(())
}

/// Returns the last `limit` days with any, newest first.
pub(crate) fn last_days(connection: &Connection, limit: u32) -> Outcome<Vec<Day>> {
    let mut select = connection.prepare_cached(
        "SELECT day, task, answers, prompt_tokens, completion_tokens, saved_tokens FROM savings
         WHERE day IN (SELECT DISTINCT day FROM savings ORDER BY day DESC LIMIT ?1) ORDER BY day DESC",
    )?;
    let mut rows = select.query([limit])?;
    let mut days: Vec<Day> = Vec::new();
    while let Some(row) = rows.next()? {
        let day: String = row.get(0)?;
        if days.last().is_none_or(|last| last.day != day) {
            days.push(Day {
                day,
                tasks: BTreeMap::new(),
            });
        }
        // A newer version may have had more tasks.
        let (Ok(Word(task)), Some(day)) = (row.get::<_, Word<Task>>(1), days.last_mut()) else {
            continue;
        };
        let spent = TaskSavings {
            answers: row.get(2)?,
            prompt_tokens: row.get(3)?,
            completion_tokens: row.get(4)?,
            saved_tokens: row.get(5)?,
        };
        day.tasks.insert(task, spent);
    }
    Ok(days)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Database;
    use jiff::civil::date;

    fn spent(saved_tokens: u64) -> TaskSavings {
        TaskSavings {
            answers: 1,
            prompt_tokens: 30,
            completion_tokens: 5,
            saved_tokens,
        }
    }

    #[test]
    fn savings_are_summed_by_day_and_task_for_a_year() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(&folder.path().join("tierbar.db")).unwrap();
        let add = |day, task, tokens| {
            database
                .write(|change| add(change, day, task, spent(tokens)))
                .unwrap();
        };
        let (old, today) = (date(2025, 11, 20), date(2026, 11, 22));
        add(old, Task::Brief, 1);
        add(date(2026, 11, 21), Task::Triage, 7);
        add(today, Task::Triage, 10);
        add(today, Task::Triage, 20);
        add(today, Task::Compress, u64::MAX);
        let days = database
            .read(|connection| last_days(connection, 10))
            .unwrap();
        let named: Vec<_> = days.iter().map(|day| day.day.as_str()).collect();
        assert_eq!(named, ["2026-11-22", "2026-11-21"]);
        let triage = days[0].tasks[&Task::Triage];
        assert_eq!(
            (triage.answers, triage.prompt_tokens, triage.saved_tokens),
            (2, 60, 30)
        );
        assert_eq!(days[0].tasks[&Task::Compress].saved_tokens, 1 << 50);
        assert_eq!(days[1].tasks[&Task::Triage], spent(7));
        let one = database
            .read(|connection| last_days(connection, 1))
            .unwrap();
        assert_eq!(one, days[..1]);
    }

    #[test]
    fn a_task_of_a_newer_version_is_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(&folder.path().join("tierbar.db")).unwrap();
        database
            .write(|change| {
                add(change, date(2026, 11, 22), Task::Triage, spent(7))?;
                sql::run(
                    change,
                    "INSERT INTO savings VALUES ('2026-11-22', 'paint', 1, 1, 1, 1)",
                    [],
                )
            })
            .unwrap();
        let days = database
            .read(|connection| last_days(connection, 10))
            .unwrap();
        assert_eq!(days[0].tasks.len(), 1);
    }
}

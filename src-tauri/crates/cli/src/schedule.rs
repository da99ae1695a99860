//! `tierbar schedule`: what runs at a time of day, and running one now.

use crate::{
    client::{Client, admin, read},
    output,
};
use jiff::{Timestamp, tz::TimeZone};
use serde::Deserialize;
use serde_json::json;
use std::path::PathBuf;
use tierbar_core::{Error, schedule::ScheduleStatus};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// What is configured, when it runs next, and what came of it last
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Run one now, beside its turns; returns when it is done
    Run { name: String },
}

#[derive(Debug, Deserialize)]
struct Listed {
    schedules: Vec<ScheduleStatus>,
}

pub(crate) async fn run(home: Option<PathBuf>, command: Command) -> Result<(), Error> {
    let client = Client::running_or_own(home).await?;
    let outcome = match command {
        Command::List { json } => list(&client, json).await,
        Command::Run { name } => run_now(&client, &name).await,
    };
    client.close().await;
    outcome
}

async fn list(client: &Client, as_json: bool) -> Result<(), Error> {
    let answer = client.get("/tierbar/v1/schedules").await?;
    if as_json {
        output::line(&answer.to_string());
        return Ok(());
    }
    let Listed { schedules } = read(answer)?;
    if schedules.is_empty() {
        output::error_line("No schedule is configured; docs/tasks.md tells how.");
    }
    for schedule in &schedules {
        output::write(&shown(schedule, &TimeZone::system()));
    }
    Ok(())
}

async fn run_now(client: &Client, name: &str) -> Result<(), Error> {
    let answer = client
        .post(&admin(&["schedules", name, "run"], &[]), &json!({}))
        .await?;
    output::line(answer["outcome"].as_str().unwrap_or_default());
    Ok(())
}

fn shown(schedule: &ScheduleStatus, zone: &TimeZone) -> String {
    let ScheduleStatus { name, config, .. } = schedule;
    let time = |at: i64| {
        let at = Timestamp::from_second(at).unwrap_or(Timestamp::UNIX_EPOCH);
        at.to_zoned(zone.clone())
            .strftime("%Y-%m-%d %H:%M")
            .to_string()
    };
    let task = config.task.as_str();
    let mut text = format!(
        "{name}: {task} of {} at {}, to {}\n",
        config.source, config.at, config.to
    );
    match (schedule.running, schedule.next_at) {
        (true, _) => text += "  running\n",
        (false, Some(next)) => text += &format!("  next {}\n", time(next)),
        (false, None) => text += "  not while no app and no `tierbar serve` runs\n",
    }
    if let (Some(tried), Some(outcome)) = (schedule.tried_at, &schedule.outcome) {
        let how = if schedule.failing { "failed" } else { "done" };
        let outcome = outcome.replace(char::is_control, " ");
        text += &format!("  {how} {}: {outcome}\n", time(tried));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_schedule_is_told_with_its_next_turn_and_its_last() {
        let status = json!({
            "name": "nightly", "at": "02:00", "task": "brief", "source": "/logs", "to": "/b/{date}.md",
            "next_at": 1_784_548_865, "tried_at": 1_784_462_465, "outcome": "no\nmodel", "failing": true, "running": false
        });
        let mut status: ScheduleStatus = serde_json::from_value(status).unwrap();
        assert_eq!(
            shown(&status, &TimeZone::UTC),
            "nightly: brief of /logs at 02:00, to /b/{date}.md\n  next 2026-07-20 12:01\n  failed 2026-07-19 12:01: no model\n"
        );
        status.next_at = None;
        assert!(shown(&status, &TimeZone::UTC).contains("not while"));
    }
}

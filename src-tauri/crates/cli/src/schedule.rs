//! `tierbar schedule`: lists schedules and runs one now.

use crate::{
    client::{Client, admin, read},
    output,
};
use jiff::{Timestamp, tz::TimeZone};
use serde::Deserialize;
use serde_json::json;
use std::path::PathBuf;
use tierbar_core::{Error, schedule::ScheduleStatus};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List schedules with their next run and last result
    List,
    /// Run a schedule now and wait until it is done
    Run {
        /// Name of the schedule
        name: String,
    },
}

#[derive(Debug, Deserialize)]
struct ScheduleList {
    schedules: Vec<ScheduleStatus>,
}

pub(crate) async fn run(home: Option<PathBuf>, args: Args) -> Result<(), Error> {
    let client = Client::running_or_own(home).await?;
    let outcome = match args.command {
        Command::List => list(&client, args.json).await,
        Command::Run { name } => run_now(&client, &name, args.json).await,
    };
    client.close().await;
    outcome
}

async fn list(client: &Client, as_json: bool) -> Result<(), Error> {
    let answer = client.get("/tierbar/v1/schedules").await?;
    if as_json {
        output::json(&answer);
        return Ok(());
    }
    let ScheduleList { schedules } = read(answer)?;
    if schedules.is_empty() {
        output::error_line("No schedules are configured. To add one, see docs/tasks.md.");
    }
    for schedule in &schedules {
        output::write(&describe(schedule, &TimeZone::system()));
    }
    Ok(())
}

async fn run_now(client: &Client, name: &str, as_json: bool) -> Result<(), Error> {
    let answer = client
        .post(&admin(&["schedules", name, "run"], &[]), &json!({}))
        .await?;
    let outcome = answer["outcome"].as_str().unwrap_or_default();
    output::done(as_json, &answer, outcome);
    Ok(())
}

fn describe(schedule: &ScheduleStatus, zone: &TimeZone) -> String {
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
        (false, Some(next)) => text += &format!("  next run {}\n", time(next)),
        (false, None) => text += "  runs only while the app or `tierbar serve` is running\n",
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
    fn a_schedule_shows_its_next_run_and_last_result() {
        let status = json!({
            "name": "nightly", "at": "02:00", "task": "brief", "source": "/logs", "to": "/b/{date}.md",
            "next_at": 1_784_548_865, "tried_at": 1_784_462_465, "outcome": "no\nmodel", "failing": true, "running": false
        });
        let mut status: ScheduleStatus = serde_json::from_value(status).unwrap();
        assert_eq!(
            describe(&status, &TimeZone::UTC),
            "nightly: brief of /logs at 02:00, to /b/{date}.md\n  next run 2026-07-20 12:01\n  failed 2026-07-19 12:01: no model\n"
        );
        status.next_at = None;
        assert!(describe(&status, &TimeZone::UTC).contains("runs only while"));
    }
}

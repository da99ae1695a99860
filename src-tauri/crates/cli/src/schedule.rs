//! `tierbar schedule`: lists schedules, adds and removes them, and runs one now.

use crate::{
    client::{Client, admin_path, read},
    output,
};
use jiff::{Timestamp, tz::TimeZone};
use serde::Deserialize;
use serde_json::json;
use std::path::PathBuf;
use tierbar_core::{Code, Error, nearest::suggest, schedule::ScheduleStatus};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List schedules with their next run and last result
    List,
    /// Add a schedule, or change one
    Add(Add),
    /// Remove a schedule; what it has written stays
    #[command(visible_alias = "remove")]
    Rm {
        /// Name of the schedule
        name: String,
    },
    /// Run a schedule now and wait until it is done
    Run {
        /// Name of the schedule
        name: String,
    },
}

#[derive(Debug, clap::Args)]
struct Add {
    /// Name of the schedule
    name: String,
    /// Local time of day, such as 07:00
    #[arg(long, value_name = "TIME")]
    at: String,
    /// Days of the week, such as mon,tue [default: every day]
    #[arg(long, value_name = "DAYS", value_delimiter = ',')]
    days: Vec<String>,
    /// What to do
    #[arg(long, value_name = "TASK", value_parser = ["brief", "summarize"])]
    task: String,
    /// File, folder or URL to read
    #[arg(long, value_name = "PATH")]
    source: String,
    /// File to write, with {date} in its name for the day
    #[arg(long, value_name = "PATH")]
    to: String,
    /// Tier or model [default: the task's own]
    #[arg(long, value_name = "TIER")]
    model: Option<String>,
    /// Maximum length of the result, in words [default: the task's own]
    #[arg(long, value_name = "COUNT")]
    words: Option<u32>,
}

#[derive(Debug, Deserialize)]
struct ScheduleList {
    schedules: Vec<ScheduleStatus>,
}

pub(crate) async fn run(home: Option<PathBuf>, args: Args) -> Result<(), Error> {
    let client = Client::running_or_own(home).await?;
    let outcome = match args.command {
        None | Some(Command::List) => list(&client, args.json).await,
        Some(Command::Add(add)) => self::add(&client, &add, args.json).await,
        Some(Command::Rm { name }) => remove(&client, &name, args.json).await,
        Some(Command::Run { name }) => run_now(&client, &name, args.json).await,
    };
    client.close().await;
    outcome
}

async fn list(client: &Client, as_json: bool) -> Result<(), Error> {
    let answer = client.get("/tierbar/v1/schedules").await?;
    if as_json {
        output::write_json(&answer);
        return Ok(());
    }
    let ScheduleList { schedules } = read(answer)?;
    if schedules.is_empty() {
        output::error_line("There are no schedules. Add one with `tierbar schedule add`.");
    }
    for schedule in &schedules {
        output::write(&describe(schedule, &TimeZone::system()));
    }
    Ok(())
}

async fn add(client: &Client, add: &Add, as_json: bool) -> Result<(), Error> {
    let name = &add.name;
    let schedule = json!({
        "at": add.at,
        "days": add.days,
        "task": add.task,
        "source": add.source,
        "to": add.to,
        "model": add.model,
        "words": add.words,
    });
    let patch = json!({"schedules": {name: schedule}});
    client.patch("/tierbar/v1/config", &patch).await?;
    let answer = client.get("/tierbar/v1/schedules").await?;
    let ScheduleList { schedules } = read(answer)?;
    let Some(added) = schedules.iter().find(|schedule| schedule.name == *name) else {
        let message = format!("the schedule {name} was removed meanwhile");
        return Err(Error::new(Code::NotFound, message));
    };
    if as_json {
        output::write_json(&json!(added));
    } else {
        output::write(&describe(added, &TimeZone::system()));
    }
    Ok(())
}

async fn remove(client: &Client, name: &str, as_json: bool) -> Result<(), Error> {
    let ScheduleList { schedules } = read(client.get("/tierbar/v1/schedules").await?)?;
    let names = schedules.iter().map(|schedule| schedule.name.as_str());
    if !names.clone().any(|known| known == name) {
        let hint = suggest(name, names, "`tierbar schedule list` lists them");
        let message = format!("there is no schedule \"{name}\"");
        return Err(Error::new(Code::NotFound, message).hint(hint));
    }
    let patch = json!({"schedules": {name: null}});
    client.patch("/tierbar/v1/config", &patch).await?;
    output::write_outcome(
        as_json,
        &json!({"removed": name}),
        &format!("Removed {name}."),
    );
    Ok(())
}

async fn run_now(client: &Client, name: &str, as_json: bool) -> Result<(), Error> {
    let answer = client
        .post(&admin_path(&["schedules", name, "run"], &[]), &json!({}))
        .await?;
    let outcome = answer["outcome"].as_str().unwrap_or_default();
    output::write_outcome(as_json, &answer, outcome);
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
    let what = config.task.result();
    let mut text = format!(
        "{name}: {what} of {} at {}, to {}\n",
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

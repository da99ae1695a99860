//! `tierbar schedule`: lists schedules, adds and removes them, and runs one now.

use crate::{
    Group,
    client::{Client, admin_path, with_host},
    output::{self, format_time},
};
use jiff::tz::TimeZone;
use serde::Serialize;
use serde_json::json;
use std::path::PathBuf;
use tierbar_core::{Code, Error, nearest::suggest, schedule::ScheduleStatus};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
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

#[derive(Debug, Serialize, clap::Args)]
pub(crate) struct Add {
    /// Name of the schedule
    #[serde(skip)]
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

const PATH: &str = "/tierbar/v1/schedules";

pub(crate) async fn run(home: Option<PathBuf>, args: Group<Command>) -> Result<(), Error> {
    with_host(home, async |client| match args.command {
        None | Some(Command::List) => {
            let none = "There are no schedules. Add one with `tierbar schedule add`.";
            let listed = client.get(PATH).await?;
            output::write_list(args.json, listed, "schedules", none, |one| {
                describe(one, &TimeZone::system())
            })
        }
        Some(Command::Add(add)) => self::add(client, &add, args.json).await,
        Some(Command::Rm { name }) => remove(client, &name, args.json).await,
        Some(Command::Run { name }) => {
            let path = admin_path(&["schedules", &name, "run"], &[]);
            let answer = client.post(&path, &json!({})).await?;
            let outcome = answer["outcome"].as_str().unwrap_or_default();
            output::write_outcome(args.json, &answer, outcome);
            Ok(())
        }
    })
    .await
}

async fn fetch_schedules(client: &Client) -> Result<Vec<ScheduleStatus>, Error> {
    client.list(PATH, "schedules").await
}

async fn add(client: &Client, add: &Add, as_json: bool) -> Result<(), Error> {
    let name = &add.name;
    let patch = json!({"schedules": {name: add}});
    client.patch("/tierbar/v1/config", &patch).await?;
    let schedules = fetch_schedules(client).await?;
    let Some(added) = schedules.iter().find(|schedule| schedule.name == *name) else {
        let message = format!("the schedule {name} was removed meanwhile");
        return Err(Error::new(Code::NotFound, message));
    };
    let text = describe(added, &TimeZone::system());
    output::write_outcome(as_json, &json!(added), &text);
    Ok(())
}

async fn remove(client: &Client, name: &str, as_json: bool) -> Result<(), Error> {
    let schedules = fetch_schedules(client).await?;
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

fn describe(schedule: &ScheduleStatus, zone: &TimeZone) -> String {
    let ScheduleStatus { name, config, .. } = schedule;
    let what = config.task.result();
    let mut text = format!(
        "{name}: {what} of {} at {}, to {}",
        config.source, config.at, config.to
    );
    match (schedule.running, schedule.next_at) {
        (true, _) => text += "\n  running",
        (false, Some(next)) => text += &format!("\n  next run {}", format_time(next, zone)),
        (false, None) => text += "\n  runs only while the app or `tierbar serve` is running",
    }
    if let (Some(tried), Some(outcome)) = (schedule.tried_at, &schedule.outcome) {
        let how = if schedule.failing { "failed" } else { "done" };
        let outcome = outcome.replace(char::is_control, " ");
        text += &format!("\n  {how} {}: {outcome}", format_time(tried, zone));
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
            "nightly: brief of /logs at 02:00, to /b/{date}.md\n  next run 2026-07-20 12:01\n  failed 2026-07-19 12:01: no model"
        );
        status.next_at = None;
        assert!(describe(&status, &TimeZone::UTC).contains("runs only while"));
    }
}

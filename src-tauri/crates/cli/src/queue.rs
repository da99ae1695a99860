//! `tierbar queue`: lists and manages queued requests.

use crate::{
    Group,
    client::{Client, admin_path, read_answer, with_host},
    output::{self, format_time},
};
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::{Value, json};
use std::{collections::BTreeMap, path::PathBuf};
use tierbar_core::{
    Error,
    queue::{JobStatus, WebhookState},
    units::file_size,
};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// List the newest requests and the number in each state
    List {
        /// State to list
        #[arg(long, value_name = "STATE", value_parser = ["waiting", "running", "done", "failed", "cancelled", "expired"])]
        state: Option<String>,
        /// Number of jobs to list
        #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
        limit: u32,
    },
    /// Print a request and its answer as indented JSON
    Show {
        /// Job ID
        id: String,
    },
    /// Cancel a request, or delete one that has ended
    Cancel {
        /// Job ID
        id: String,
    },
    /// Print the secret that signs webhooks
    Secret,
}

#[derive(Debug, Deserialize)]
struct JobList {
    counts: BTreeMap<String, u64>,
    bytes: u64,
    jobs: Vec<JobStatus>,
}

#[derive(Debug, Deserialize)]
struct Secret {
    secret: String,
}

pub(crate) async fn run(home: Option<PathBuf>, args: Group<Command>) -> Result<(), Error> {
    let as_json = args.json;
    with_host(home, async |client| match args.command {
        None => list(client, None, 20, as_json).await,
        Some(Command::List { state, limit }) => {
            list(client, state.as_deref(), limit, as_json).await
        }
        Some(Command::Show { id }) => {
            let job = client.get(&job_path(&id)).await?;
            output::write_outcome(as_json, &job, &format!("{job:#}"));
            Ok(())
        }
        Some(Command::Cancel { id }) => cancel(client, &id, as_json).await,
        Some(Command::Secret) => {
            let answer = client.get("/tierbar/v1/queue/secret").await?;
            output::write_answer(as_json, answer, |Secret { secret }| secret + "\n")
        }
    })
    .await
}

async fn list(
    client: &Client,
    state: Option<&str>,
    limit: u32,
    as_json: bool,
) -> Result<(), Error> {
    let limit = limit.to_string();
    let mut query = vec![("limit", limit.as_str())];
    query.extend(state.map(|state| ("state", state)));
    let listed = client.get(&admin_path(&["queue"], &query)).await?;
    if as_json {
        output::write_json(&listed);
        return Ok(());
    }
    let list: JobList = read_answer(listed)?;
    if list.counts.is_empty() {
        output::error_line("The queue is empty. To queue requests, see docs/queue.md.");
        return Ok(());
    }
    let counts = list.counts.iter();
    let counted: Vec<_> = counts
        .map(|(state, count)| format!("{count} {state}"))
        .collect();
    let (counted, bytes) = (counted.join(", "), file_size(list.bytes));
    output::write_line(&format!("{counted} · {bytes}"));
    for job in &list.jobs {
        output::write_line(&render_job(job, &TimeZone::system()));
    }
    if client.is_own() && list.jobs.iter().any(|job| !job.state.has_ended()) {
        output::error_line(
            "Jobs run while Tierbar is running. Open the app or run `tierbar serve`.",
        );
    }
    Ok(())
}

async fn cancel(client: &Client, id: &str, as_json: bool) -> Result<(), Error> {
    match client.delete(&job_path(id)).await? {
        Value::Null => output::write_outcome(
            as_json,
            &json!({"deleted": id}),
            "Deleted the job and its answer.",
        ),
        job => output::write_outcome(as_json, &job, "Canceled the job."),
    }
    Ok(())
}

fn job_path(id: &str) -> String {
    admin_path(&[id], &[]).replacen("/tierbar/v1/", "/v1/queue/", 1)
}

fn render_job(job: &JobStatus, zone: &TimeZone) -> String {
    let at = format_time(job.created_ms / 1000, zone);
    let (id, state, path) = (&job.id, job.state.as_str(), &job.path);
    let mut parts = vec![format!("{id}  {at}  {state:<9}  {path}")];
    if job.attempts > 1 {
        parts.push(format!("{} attempts", job.attempts));
    }
    parts.extend(job.reason.clone());
    if job.webhook == Some(WebhookState::GivenUp) {
        parts.push("the webhook was not delivered".to_owned());
    }
    parts.join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_listed_on_one_line() {
        let job = |fields: Value| {
            let mut job = json!({
                "id": "1f", "state": "done", "priority": "normal", "path": "/v1/chat/completions",
                "created_ms": 1_763_769_600_123_u64, "not_before_ms": 0, "deadline_ms": 0, "ended_ms": null,
                "attempts": 1, "max_attempts": 300, "status": 200, "reason": null, "webhook": null,
            });
            for (name, value) in fields.as_object().unwrap() {
                job[name] = value.clone();
            }
            render_job(&serde_json::from_value(job).unwrap(), &TimeZone::UTC)
        };
        assert_eq!(
            job(json!({})),
            "1f  2025-11-22 00:00  done       /v1/chat/completions"
        );
        assert_eq!(
            job(json!({"state": "waiting", "attempts": 3, "reason": "connection refused"})),
            "1f  2025-11-22 00:00  waiting    /v1/chat/completions · 3 attempts · connection refused"
        );
    }

    #[test]
    fn a_job_id_is_percent_encoded() {
        assert_eq!(job_path("a/../b"), "/v1/queue/a%2F..%2Fb");
    }
}

//! `tierbar agent`: shows how models act, measures it, lists what agents may do without asking again, revokes it, and undoes what they
//! changed in files.

use crate::{
    Group,
    client::{Client, admin_path, read_answer, with_host},
    measure::{self, Common},
    output::{self, format_time},
};
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use std::path::PathBuf;
use tierbar_chats::agent::{AgentGrant, AgentReport, AgentRun, AgentScore};
use tierbar_core::{Code, Error, ModelKind, status::EngineKind};

const GRANTS: &str = "/tierbar/v1/agent/grants";
const RUNS: &str = "/tierbar/v1/agent/runs";

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Measure whether a tier's model works better with tool calls or text commands; no step is run
    Measure {
        /// Tier to measure [default: the loaded one, or the first with a model]
        tier: Option<String>,
        /// Show the last report without measuring
        #[arg(long)]
        show: bool,
    },
    /// List what agents may do without asking again
    Grants,
    /// Revoke a permission, so that agents ask again
    Revoke {
        /// Permission ID
        #[arg(required_unless_present = "all")]
        id: Option<String>,
        /// Revoke all permissions
        #[arg(long, conflicts_with = "id")]
        all: bool,
    },
    /// Undo the file changes of an agent's run
    Undo {
        /// Run ID [default: the last run]
        run: Option<String>,
        /// Also undo files that have changed since; those changes are lost
        #[arg(long)]
        force: bool,
        /// List the runs that can be undone
        #[arg(long, conflicts_with_all = ["run", "force"])]
        list: bool,
    },
}

pub(crate) async fn run(home: Option<PathBuf>, args: Group<Command>) -> Result<(), Error> {
    let Group { command, json } = args;
    if let Some(Command::Measure { tier, show }) = command {
        let common = Common { tier, json, show };
        return measure::run(home, "agent", common, Value::Null, render_report).await;
    }
    with_host(home, async |client| call(client, command, json).await).await
}

async fn call(client: &Client, command: Option<Command>, as_json: bool) -> Result<(), Error> {
    match command {
        None | Some(Command::Measure { .. }) => overview(client, as_json).await,
        Some(Command::Grants) => list_grants(client, as_json).await,
        Some(Command::Revoke { id: Some(id), .. }) => {
            let path = admin_path(&["agent", "grants", &id], &[]);
            client.delete(&path).await?;
            let sentence = "Revoked. Agents ask before they do this again.";
            output::write_outcome(as_json, &json!({"revoked": 1}), sentence);
            Ok(())
        }
        Some(Command::Revoke { id: None, .. }) => {
            let answer = client.delete(GRANTS).await?;
            output::write_outcome(as_json, &answer, "Revoked. Agents ask again each time.");
            Ok(())
        }
        Some(Command::Undo { list: true, .. }) => list_runs(client, as_json).await,
        Some(Command::Undo { run, force, .. }) => undo(client, run, force, as_json).await,
    }
}

/// Prints how the model of each tier acts.
async fn overview(client: &Client, as_json: bool) -> Result<(), Error> {
    let tiers = client.tiers().await?;
    let chats = tiers.into_iter().filter(|tier| {
        // A tier without a model has nothing to measure.
        tier.kind == ModelKind::Chat && tier.model.is_some()
    });
    let (mut reports, mut lines) = (Vec::new(), Vec::new());
    for tier in chats {
        let path = admin_path(&["tiers", tier.id.as_str(), "agent"], &[]);
        let mut answer = client.get(&path).await?;
        let last = answer["report"].take();
        reports.push(json!({"tier": &tier.id, "model": &tier.model, "report": &last}));
        let last: Option<AgentReport> = read_answer(last)?;
        let model = tier.model.map(|model| model.to_string());
        let acts = match last {
            Some(report) => report.sentence(),
            None if tier.engine != EngineKind::Embedded => {
                "Not run by Tierbar's engine, so it cannot be measured. It uses tool calls."
                    .to_owned()
            }
            None => format!("Not measured: run `tierbar agent measure {}`.", tier.id),
        };
        lines.push(format!(
            "{}: {}\n  {acts}",
            tier.id,
            model.unwrap_or_default()
        ));
    }
    if as_json {
        output::write_json(&reports.into());
        return Ok(());
    }
    if lines.is_empty() {
        output::write_line("No tier has a chat model yet.");
    }
    for line in lines {
        output::write_line(&line);
    }
    Ok(())
}

fn render_report(report: &AgentReport) -> String {
    let model = &report.model;
    let way = |name: &str, score: AgentScore| {
        let (right, of, seconds) = (score.right, report.prompts, score.seconds);
        format!("{name:<14} {right:>2} of {of} correct in {seconds:.1} s\n")
    };
    let calls = way("Tool calls", report.calls);
    let text = way("Text commands", report.text);
    format!("{model}\n{calls}{text}{}\n", report.sentence())
}

async fn list_grants(client: &Client, as_json: bool) -> Result<(), Error> {
    let mut answer = client.get(GRANTS).await?;
    let grants = answer["grants"].take();
    output::write_answer(as_json, grants, |grants: Vec<AgentGrant>| match &*grants {
        [] => "Agents ask each time. There are no permissions.\n".to_owned(),
        grants => grants
            .iter()
            .map(|grant| render_grant(grant, &TimeZone::system()))
            .collect(),
    })
}

async fn list_runs(client: &Client, as_json: bool) -> Result<(), Error> {
    let mut answer = client.get(RUNS).await?;
    let runs = answer["runs"].take();
    output::write_answer(as_json, runs, |runs: Vec<AgentRun>| match &*runs {
        [] => "Agents have changed no files in the last seven days.\n".to_owned(),
        runs => runs
            .iter()
            .map(|run| render_run(run, &TimeZone::system()))
            .collect(),
    })
}

/// Undoes the last run of a chat that changed files.
pub(crate) async fn undo_in_chat(client: &Client, chat: &str, force: bool) -> Result<(), Error> {
    let runs: Vec<AgentRun> = client.list(RUNS, "runs").await?;
    let mut runs = runs.into_iter();
    let last = runs.find(|run| run.chat.as_deref() == Some(chat));
    let nothing = "this chat has no file changes that can be undone";
    let last = last.ok_or_else(|| Error::new(Code::NotFound, nothing))?;
    undo(client, Some(last.id), force, false).await
}

async fn undo(
    client: &Client,
    run: Option<String>,
    force: bool,
    as_json: bool,
) -> Result<(), Error> {
    let run = match run {
        Some(run) => run,
        None => {
            let runs: Vec<AgentRun> = client.list(RUNS, "runs").await?;
            let last = runs.into_iter().next();
            let nothing = "agents have changed no files in the last seven days";
            last.ok_or_else(|| Error::new(Code::NotFound, nothing))?.id
        }
    };
    let path = admin_path(&["agent", "runs", &run, "undo"], &[]);
    let undone = client.post(&path, &json!({"force": force})).await?;
    let files = undone["files"].as_array().into_iter().flatten();
    let files: Vec<_> = files.filter_map(Value::as_str).collect();
    let sentence = format!("Undone: {}", files.join(", "));
    output::write_outcome(as_json, &undone, &sentence);
    Ok(())
}

/// A run with its id on one line, and what it changed below it.
fn render_run(run: &AgentRun, zone: &TimeZone) -> String {
    let AgentRun {
        id, folder, files, ..
    } = run;
    let chat = match &run.chat {
        Some(chat) => format!("chat {chat}"),
        None => "a program's run".to_owned(),
    };
    let at = format_time(run.at, zone);
    format!("{id}  {at}, {chat}\n  in {folder}: {}\n", files.join(", "))
}

/// A grant with its id on one line, and where and until when it holds below it.
fn render_grant(grant: &AgentGrant, zone: &TimeZone) -> String {
    let mut text = format!("{}  {}", grant.id, grant.title);
    if let Some(what) = &grant.what {
        for line in what.lines() {
            text += &format!("\n    {line}");
        }
    }
    let place = grant.folder.as_ref().map(|folder| format!("in {folder}"));
    let chat = match &grant.chat {
        Some(chat) => format!("in chat {chat}"),
        None => "in every chat".to_owned(),
    };
    let end = match grant.until {
        Some(until) => format!("until {}", format_time(until, zone)),
        None => "until you revoke it".to_owned(),
    };
    let where_and_when: Vec<_> = place.into_iter().chain([chat, end]).collect();
    format!("{text}\n  {}\n", where_and_when.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierbar_chats::agent::AgentWay;
    use tierbar_core::{ModelId, TierId};

    #[test]
    fn a_grant_says_where_and_until_when_it_holds() {
        let mut grant = AgentGrant {
            id: "a".into(),
            title: "Run this command".into(),
            what: Some("make test".into()),
            folder: Some("/work".into()),
            chat: None,
            since: 0,
            until: None,
        };
        let shown = |grant: &AgentGrant| render_grant(grant, &TimeZone::UTC);
        assert_eq!(
            shown(&grant),
            "a  Run this command\n    make test\n  in /work, in every chat, until you revoke it\n"
        );
        (grant.what, grant.chat, grant.until) = (None, Some("c".into()), Some(60));
        assert_eq!(
            shown(&grant),
            "a  Run this command\n  in /work, in chat c, until 1970-01-01 00:01\n"
        );
    }

    #[test]
    fn a_run_says_where_and_what_it_changed() {
        let mut run = AgentRun {
            id: "a".into(),
            chat: Some("c".into()),
            message: Some(2),
            folder: "/work".into(),
            at: 60,
            files: vec!["a.py".into(), "b.py".into()],
        };
        assert_eq!(
            render_run(&run, &TimeZone::UTC),
            "a  1970-01-01 00:01, chat c\n  in /work: a.py, b.py\n"
        );
        run.chat = None;
        let shown = render_run(&run, &TimeZone::UTC);
        assert!(shown.contains(", a program's run\n"), "{shown}");
    }

    #[test]
    fn a_report_says_both_scores_and_what_follows() {
        let score = |right| AgentScore {
            right,
            seconds: 3.0,
        };
        let measured = AgentReport {
            version: "1".into(),
            taken_at: "2026-11-26T12:00:00Z".into(),
            tier: TierId::new("fast").unwrap(),
            model: ModelId("small".into()),
            size_bytes: 1,
            sha256: None,
            thinking: false,
            prompts: 12,
            calls: score(4),
            text: score(10),
            way: Some(AgentWay::Text),
        };
        let text = render_report(&measured);
        assert!(
            text.starts_with(
                "small\nTool calls      4 of 12 correct in 3.0 s\nText commands  10 of 12 correct in 3.0 s\nUses text commands ("
            ),
            "{text}"
        );
    }
}

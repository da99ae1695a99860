//! `tierbar agent`: shows what models are trusted with, measures how they act, lists what agents may do without asking again, revokes
//! it, and undoes what they changed in files.

use crate::{
    Group,
    client::{Client, admin_path, with_host},
    measure::{self, Common},
    models::{installed, render_marks},
    output::{self, format_time},
};
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use std::{path::PathBuf, time::Duration};
use tierbar_chats::agent::{AgentGrant, AgentRun};
use tierbar_core::{
    Code, Error, ModelId, ModelKind,
    first_steps::AgentScore,
    judgment::{Judgment, Mark},
    status::{EngineKind, TierStatus},
};

const GRANTS: &str = "/tierbar/v1/agent/grants";
const RUNS: &str = "/tierbar/v1/agent/runs";

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Measure whether a tier's model works better with tool calls or text commands; no step is run
    Measure {
        /// Tier to measure [default: the loaded one, or the first with a model]
        tier: Option<String>,
        /// Show what is known without measuring [default: of all tiers]
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
    if let Some(Command::Measure { tier, show: false }) = command {
        let common = Common {
            tier,
            json,
            show: false,
        };
        return measure::run(home, "agent", common, Value::Null, render_report).await;
    }
    with_host(home, async |client| call(client, command, json).await).await
}

async fn call(client: &Client, command: Option<Command>, as_json: bool) -> Result<(), Error> {
    match command {
        None => overview(client, None, as_json).await,
        Some(Command::Measure { tier, .. }) => overview(client, tier.as_deref(), as_json).await,
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

/// Prints what the model of each tier is trusted with, or that of one.
async fn overview(client: &Client, only: Option<&str>, as_json: bool) -> Result<(), Error> {
    let mut tiers = client.tiers().await?;
    // A tier without a model has nothing to measure.
    tiers.retain(|tier| tier.kind == ModelKind::Chat && tier.model.is_some());
    if let Some(only) = only {
        tiers.retain(|tier| tier.id.as_str() == only);
        if tiers.is_empty() {
            let message = format!("no tier named {only} has a chat model");
            return Err(Error::new(Code::TierUnknown, message));
        }
    }
    let models = installed(client).await?;
    let model = |tier: &TierStatus| {
        let mut models = models.iter();
        models.find(|model| model.tiers.contains(&tier.id))
    };
    let marks = |tier: &TierStatus| {
        let marks = model(tier).map(|model| model.marks.as_slice());
        marks.unwrap_or_default()
    };
    if as_json {
        let tiers = tiers
            .iter()
            .map(|tier| json!({"tier": &tier.id, "model": &tier.model, "marks": marks(tier)}));
        output::write_json(&tiers.collect::<Value>());
        return Ok(());
    }
    if tiers.is_empty() {
        output::write_line("No tier has a chat model yet.");
    }
    let configured = client.get("/tierbar/v1/config").await?;
    for tier in &tiers {
        let account = model(tier).and_then(|model| model.account.as_ref());
        let thinks = configured["config"]["tiers"][tier.id.as_str()]["thinking"] == true
            && account.is_some_and(|account| account.thinking);
        output::write(&render_tier(tier, marks(tier), thinks));
    }
    Ok(())
}

/// `thinks`: where a request does not say. How the model acts is measured for one of the two.
fn render_tier(tier: &TierStatus, marks: &[Mark], thinks: bool) -> String {
    let model = tier.model.as_ref().map_or("", ModelId::as_str);
    let mut text = format!("{}: {model}\n{}", tier.id, render_marks(marks));
    if tier.engine != EngineKind::Endpoint {
        let is_untested = |judgment: &Judgment| marks.iter().all(|mark| mark.judgment != *judgment);
        for judgment in Judgment::TESTED.into_iter().filter(is_untested) {
            text += &format!("  {:<16} Not tested yet.\n", judgment.title());
        }
    }
    let is_own = |mark: &Mark| {
        mark.first_steps
            .is_some_and(|steps| steps.thinking == thinks)
    };
    if tier.engine != EngineKind::Embedded {
        text += "  Not run by Tierbar's engine, so it cannot be measured. It uses tool calls.\n";
    } else if !marks.iter().any(is_own) {
        let (id, title) = (&tier.id, if thinks { "Agent, thinking" } else { "Agent" });
        text += &format!("  {title:<16} Not measured: run `tierbar agent measure {id}`.\n");
    }
    text
}

fn render_report(mark: &Mark) -> String {
    let model = &mark.model;
    let way = |name: &str, score: AgentScore| {
        let (right, of) = (score.right, mark.of);
        let seconds = Duration::from_millis(score.milliseconds).as_secs_f64();
        format!("{name:<14} {right:>2} of {of} correct in {seconds:.1} s\n")
    };
    let ways = mark.first_steps.map_or_else(String::new, |steps| {
        way("Tool calls", steps.calls) + &way("Text commands", steps.text)
    });
    format!("{model}\n{ways}{}\n", mark.sentence())
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
    use crate::testing::tier_status;
    use tierbar_core::first_steps::FirstSteps;

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

    fn mark(judgment: Judgment, first_steps: Option<FirstSteps>) -> Mark {
        Mark {
            judgment,
            version: "1".into(),
            taken_at: "2026-11-26T12:00:00Z".into(),
            model: ModelId("small".into()),
            size_bytes: 1,
            modified: None,
            sha256: None,
            right: 10,
            of: 12,
            passed: true,
            milliseconds: None,
            first_steps,
        }
    }

    fn steps() -> FirstSteps {
        let score = |right| AgentScore {
            right,
            milliseconds: 3000,
        };
        FirstSteps {
            thinking: false,
            calls: score(4),
            text: score(10),
        }
    }

    #[test]
    fn a_report_says_both_scores_and_what_follows() {
        let text = render_report(&mark(Judgment::Agent, Some(steps())));
        assert!(
            text.starts_with(
                "small\nTool calls      4 of 12 correct in 3.0 s\nText commands  10 of 12 correct in 3.0 s\nUses text commands ("
            ),
            "{text}"
        );
    }

    #[test]
    fn each_judgment_of_a_tiers_model_has_its_state() {
        let tier = |engine| tier_status(&json!({"id": "fast", "model": "small", "engine": engine}));
        let routing = mark(Judgment::Routing, None);
        let agent = mark(Judgment::Agent, Some(steps()));
        let on = "fast: small\n  Auto             On: 10 of 12 correct.\n";
        let acts = "  Agent            Uses text commands (10 of 12 correct; tool calls: 4).\n";
        let untested = "  Triage           Not tested yet.\n  Summaries        Not tested yet.\n  \
            Citations        Not tested yet.\n";
        let elsewhere =
            "  Not run by Tierbar's engine, so it cannot be measured. It uses tool calls.\n";
        let unmeasured = |title: &str| {
            format!("{untested}  {title:<16} Not measured: run `tierbar agent measure fast`.\n")
        };
        let both = vec![routing.clone(), agent];
        let one = vec![routing];
        for (engine, marks, thinks, rest) in [
            ("embedded", &both, false, format!("{acts}{untested}")),
            (
                "embedded",
                &both,
                true,
                format!("{acts}{}", unmeasured("Agent, thinking")),
            ),
            ("embedded", &one, false, unmeasured("Agent")),
            ("endpoint", &one, false, elsewhere.to_owned()),
        ] {
            let shown = render_tier(&tier(engine), marks, thinks);
            assert_eq!(shown, format!("{on}{rest}"), "{engine} {thinks}");
        }
    }
}

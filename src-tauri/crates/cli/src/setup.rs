//! `tierbar setup`: proposes a model for each tier of this machine, downloads them, and has each answer one question.

use crate::{
    client::{Client, admin_path, read_answer},
    confirm::confirm,
    models::pull,
    output,
};
use serde_json::json;
use std::{
    collections::BTreeMap,
    path::PathBuf,
    time::{Duration, Instant},
};
use tierbar_core::{
    Code, Error, TierId,
    budget::gib,
    nearest::suggest,
    setup::{AnswerState, FolderRoom, SetupPlan, TierAnswer, TierPlan, settings_for},
    units::file_size,
};

const ASSIGNED_WITHIN: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(200);

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Download without asking
    #[arg(long, short)]
    yes: bool,
    /// Show what would be downloaded, and change nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Print the plan, and the answers after a set-up, as JSON
    #[arg(long)]
    json: bool,
    /// Set up only these tiers [default: fast, primary and heavy]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    tiers: Vec<String>,
    /// Put a tier's model into another folder, such as heavy=/Volumes/Models
    #[arg(long, value_name = "TIER=DIR", value_parser = parse_tier_folder)]
    to: Vec<(String, PathBuf)>,
    /// RAM of the machine to plan for, such as 16GiB; implies --dry-run [default: this machine's]
    #[arg(long, value_name = "SIZE")]
    ram: Option<String>,
}

impl Args {
    fn folder(&self, plan: &TierPlan) -> Option<&PathBuf> {
        let mut to = self.to.iter();
        let found = to.find(|(tier, _)| tier == plan.tier.as_str())?;
        Some(&found.1)
    }
}

fn parse_tier_folder(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((tier, folder)) if !tier.is_empty() && !folder.is_empty() => {
            let folder = std::path::absolute(folder).map_err(|error| error.to_string())?;
            Ok((tier.to_owned(), folder))
        }
        _ => Err("write it as TIER=DIR, such as heavy=/Volumes/Models".to_owned()),
    }
}

type Rooms = BTreeMap<TierId, FolderRoom>;

/// The entry of a tier that could not be asked.
fn failed_answer(plan: &TierPlan, error: &Error) -> TierAnswer {
    TierAnswer {
        state: AnswerState::Failed,
        model: Some(format!("{} {}", plan.name, plan.quant)),
        error: Some(error.to_text("; ")),
        ..TierAnswer::waiting(plan.tier.clone())
    }
}

fn show(answer: &TierAnswer) {
    let tier = &answer.tier;
    let speed = answer
        .tokens_per_second
        .map_or_else(String::new, |speed| format!(" ({speed:.1} tok/s)"));
    match &answer.error {
        None => output::write_line(&format!("{tier} answers{speed}: {}", answer.answer)),
        Some(error) => output::error_line(&format!("{tier}: {error}")),
    }
}

pub(crate) async fn run(home: Option<PathBuf>, args: Args) -> Result<(), Error> {
    let mut client = Client::running_or_own(home.clone()).await?;
    let outcome = set_up(&mut client, home.as_ref(), &args).await;
    client.close().await;
    outcome
}

async fn set_up(client: &mut Client, home: Option<&PathBuf>, args: &Args) -> Result<(), Error> {
    let query: Vec<_> = args.ram.iter().map(|ram| ("ram", ram.as_str())).collect();
    let mut plan: SetupPlan = read_answer(client.get(&admin_path(&["setup"], &query)).await?)?;
    choose(&mut plan, args)?;
    let placed = fetch_rooms(client, &plan, args).await?;
    let only_shown = args.dry_run || args.ram.is_some();
    match (args.json, only_shown) {
        (true, true) => output::write_json(&json!(plan)),
        (true, false) => {}
        (false, _) => output::write(&render_plan(&plan, &placed)),
    }
    if only_shown {
        return Ok(());
    }
    if let Some(lack) = plan.lacks_room(&placed) {
        return Err(Error::new(Code::Storage, lack));
    }
    let is_done = plan.tiers.iter().all(|tier| tier.in_use);
    let (yes, question) = (args.yes || is_done, "\nSet up these models?");
    let hint = "add --yes to download, or --dry-run to see only the plan";
    confirm(yes, question, hint, args.json).await?;
    // All are queued first, in order of use: with a running host, they go on if this command is interrupted.
    let mut outcomes = Vec::new();
    for tier in &plan.tiers {
        outcomes.push(begin(client, tier, args).await);
    }
    let mut answers = Vec::new();
    for (tier, begun) in plan.tiers.iter().zip(outcomes) {
        let answer = match begun {
            Ok(()) => finish(client, home, tier, args).await,
            Err(error) => Err(error),
        };
        if matches!(&answer, Err(error) if error.code == Code::Cancelled) {
            return answer.map(|_| ());
        }
        let answer = answer.unwrap_or_else(|error| failed_answer(tier, &error));
        if !args.json {
            show(&answer);
        }
        answers.push(answer);
    }
    if args.json {
        output::write_json(&json!({"plan": plan, "answers": answers}));
    }
    let failed = answers.iter().filter(|answer| answer.error.is_some());
    match failed.count() {
        0 => Ok(()),
        count => {
            let message = format!("{count} of {} tiers are not set up", plan.tiers.len());
            let hint = "see the reasons above; once they are gone, run the same command again";
            Err(Error::new(Code::TierFailed, message).hint(hint))
        }
    }
}

/// Downloads a tier's model if it is not here, and has the tier answer.
async fn finish(
    client: &mut Client,
    home: Option<&PathBuf>,
    plan: &TierPlan,
    args: &Args,
) -> Result<TierAnswer, Error> {
    if plan.installed.is_none() && !has_model(client, plan).await? {
        let to = args.folder(plan);
        pull::follow(client, home, &plan.reference, to).await?;
    }
    tokio::select! {
        answer = ask(client, plan) => answer,
        _ = tokio::signal::ctrl_c() => Err(Error::new(Code::Cancelled, "stopped")),
    }
}

/// Keeps the tiers that are wanted.
fn choose(plan: &mut SetupPlan, args: &Args) -> Result<(), Error> {
    let known = |name: &str| plan.tiers.iter().any(|tier| tier.tier.as_str() == name);
    let placed = args.to.iter().map(|(tier, _)| tier);
    let mut named = args.tiers.iter().chain(placed);
    if let Some(unknown) = named.find(|name| !known(name)) {
        let names: Vec<_> = plan.tiers.iter().map(|tier| tier.tier.as_str()).collect();
        let message = format!("no model is proposed for \"{unknown}\"");
        let all = format!("name {}", names.join(", "));
        let hint = suggest(unknown, names.iter().copied(), all);
        return Err(Error::new(Code::TierUnknown, message).hint(hint));
    }
    let named = |tier: &TierPlan| args.tiers.iter().any(|name| name == tier.tier.as_str());
    for tier in &plan.tiers {
        if let Some(other) = tier.replaces.as_ref().filter(|_| args.tiers.is_empty()) {
            let tier = &tier.tier;
            plan.notes.push(format!(
                "{tier} keeps {other}. To replace it, add --tiers {tier}."
            ));
        }
    }
    plan.tiers.retain(|tier| match args.tiers.is_empty() {
        true => tier.replaces.is_none(),
        false => named(tier),
    });
    plan.download_bytes = plan.tiers.iter().map(|tier| tier.download_bytes).sum();
    Ok(())
}

/// Returns the room where models go that do not go to the models folder.
async fn fetch_rooms(client: &Client, plan: &SetupPlan, args: &Args) -> Result<Rooms, Error> {
    let mut rooms = Rooms::new();
    for tier in &plan.tiers {
        if let Some(folder) = args.folder(tier) {
            let folder = folder.display().to_string();
            let path = admin_path(&["setup", "folder"], &[("path", &folder)]);
            let room = client.get(&path).await.map_err(|error| Error {
                message: format!("{}: {}", tier.tier, error.message),
                ..error
            })?;
            rooms.insert(tier.tier.clone(), read_answer(room)?);
        }
    }
    Ok(rooms)
}

fn render_plan(plan: &SetupPlan, placed: &Rooms) -> String {
    let machine = &plan.machine;
    let mut text = format!(
        "This machine has {} of memory, {} of it for models",
        gib(machine.ram_bytes),
        gib(machine.budget_bytes)
    );
    if let Some(free) = machine.disk_free_bytes {
        text += &format!(", and {} free on disk", file_size(free));
    }
    text += ".\n";
    if let Some(others) = machine.others_bytes {
        text += &format!("Other programs use {} now.\n", gib(others));
    }
    for tier in &plan.tiers {
        text += &of_tier(tier);
    }
    text += "\n";
    for note in &plan.notes {
        text += &format!("{note}\n");
    }
    let to = match &plan.room {
        Some(room) => format!("{} ({} free)", room.path, file_size(room.free_bytes)),
        None => plan.models_dir.clone(),
    };
    text += &match plan.download_bytes {
        0 => "Nothing has to be downloaded.\n".to_owned(),
        bytes => format!("To download: {}, to {to}\n", file_size(bytes)),
    };
    for (tier, room) in placed {
        let (path, free) = (&room.path, file_size(room.free_bytes));
        text += &format!("Of these, {tier} goes to {path} ({free} free)\n");
    }
    text
}

fn of_tier(tier: &TierPlan) -> String {
    let fit = &tier.fit;
    let state = match (tier.in_use, &tier.installed) {
        (true, _) => "in use",
        (false, Some(_)) => "installed",
        (false, None) => "to download",
    };
    let mut text = format!(
        "\n  {:<8} {} {}, {}, {state}\n           {}\n           {}\n           {} tokens of context in {}, {} of memory",
        tier.tier.as_str(),
        tier.name,
        tier.quant,
        file_size(tier.size_bytes),
        tier.about,
        tier.reason,
        fit.context_tokens,
        fit.kv_cache.as_str(),
        gib(fit.total_bytes),
    );
    if let Some(other) = &tier.replaces {
        text += &format!(", replaces {other}");
    }
    if let Some(speed) = fit.speed {
        text += &format!(", {} expected", output::speed_range(speed.low, speed.high));
    }
    text + "\n"
}

/// Assigns an installed model to its tier, or queues its download, after which it is assigned.
async fn begin(client: &Client, plan: &TierPlan, args: &Args) -> Result<(), Error> {
    if let Some(model) = &plan.installed {
        if !plan.in_use {
            let tiers = json!({"tiers": {plan.tier.as_str(): settings_for(model)}});
            client.patch("/tierbar/v1/config", &tiers).await?;
        }
        return Ok(());
    }
    let mut body = json!({"reference": plan.reference, "tier": plan.tier});
    if let Some(folder) = args.folder(plan) {
        body["folder"] = json!(folder);
    }
    client.post("/tierbar/v1/downloads", &body).await?;
    Ok(())
}

async fn has_model(client: &Client, plan: &TierPlan) -> Result<bool, Error> {
    let now: SetupPlan = read_answer(client.get("/tierbar/v1/setup").await?)?;
    let has = |tier: &TierPlan| tier.tier == plan.tier && tier.in_use;
    Ok(now.tiers.iter().any(has))
}

/// Waits until the tier has its model, which it gets right after the download.
async fn in_use(client: &Client, plan: &TierPlan) -> Result<(), Error> {
    let begun = Instant::now();
    while begun.elapsed() < ASSIGNED_WITHIN {
        if has_model(client, plan).await? {
            return Ok(());
        }
        tokio::time::sleep(LOOK).await;
    }
    let message = format!("{} did not get {} {}", plan.tier, plan.name, plan.quant);
    Err(Error::new(Code::Internal, message)
        .hint("`tierbar status` says why; or choose it for the tier in Settings > Models"))
}

/// Has the host ask the tier once it has its model, and waits for its answer.
async fn ask(client: &Client, plan: &TierPlan) -> Result<TierAnswer, Error> {
    in_use(client, plan).await?;
    let path = "/tierbar/v1/setup/answers";
    client.post(path, &json!({"tiers": [plan.tier]})).await?;
    loop {
        let answers: Vec<TierAnswer> = client.list(path, "answers").await?;
        match answers.into_iter().find(|answer| answer.tier == plan.tier) {
            Some(answer) if answer.is_over() => return Ok(answer),
            Some(_) => tokio::time::sleep(LOOK).await,
            None => return Err(Error::new(Code::TierStopped, "stopped in another window")),
        }
    }
}

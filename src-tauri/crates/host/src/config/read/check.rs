//! Checks a configuration's values of the right type. Errors name the key.

use crate::address;
use std::{collections::BTreeMap, fmt::Display, ops::RangeInclusive, path::Path};
use tierbar_core::{
    Config, TierId,
    config::{
        ChainConfig, Choice, ContextStore, ContextsConfig, Dialect, DownloadsConfig, Engine,
        McpServerConfig, PolicyConfig, QueueConfig, ScheduleConfig, ServerConfig, Span, Step,
        TierConfig,
    },
    origin,
};

/// More threads than any current machine has cores.
const MOST_THREADS: u16 = 1024;
const LONGEST_TEXT: usize = 4096;

/// An invalid value of the right type.
pub(super) struct Problem {
    pub(super) keys: Vec<String>,
    pub(super) wrong: String,
}

/// The invalid key of a table, and why.
type KeyProblem = (&'static str, String);

pub(super) fn check(config: &Config) -> Result<(), Problem> {
    let at = |keys: &[&str]| {
        let keys = keys.iter().map(|key| (*key).to_owned()).collect();
        move |wrong: String| Problem { keys, wrong }
    };
    let address = address::parse(&config.listen).map_err(at(&["listen"]))?;
    address::check_network(address, config.server.network).map_err(at(&["listen"]))?;
    check_server(&config.server).map_err(|(key, wrong)| at(&["server", key])(wrong))?;
    check_path(&config.models_dir).map_err(at(&["models_dir"]))?;
    for folder in &config.library.folders {
        whole_path(folder).map_err(at(&["library", "folders"]))?;
    }
    check_range(config.downloads.at_once, "", &DownloadsConfig::AT_ONCE)
        .map_err(at(&["downloads", "at_once"]))?;
    for allowed in &config.allowed_origins {
        origin::check(allowed).map_err(at(&["allowed_origins"]))?;
    }
    check_policy(config).map_err(|(key, wrong)| at(&["policy", key])(wrong))?;
    for (name, chain) in &config.chains {
        let at = |(key, wrong)| at(&["chains", name.as_str(), key])(wrong);
        self::check_chain(name, chain, config).map_err(at)?;
    }
    check_contexts(&config.contexts).map_err(|(key, wrong)| at(&["contexts", key])(wrong))?;
    check_queue(&config.queue).map_err(|(key, wrong)| at(&["queue", key])(wrong))?;
    for (id, tier) in &config.tiers {
        let at = |(key, wrong)| at(&["tiers", id.as_str(), key])(wrong);
        self::check_tier(tier).map_err(at)?;
    }
    check_count(&config.schedules, "schedules", ScheduleConfig::MOST)
        .map_err(at(&["schedules"]))?;
    for (name, schedule) in &config.schedules {
        let at = |keys: &[&str]| at(&[&["schedules", name.as_str()][..], keys].concat());
        // Named like a tier: the name is typed, and is part of API paths.
        TierId::new(name.clone()).map_err(|why| at(&[])(why.replace("a tier", "a schedule")))?;
        schedule.check().map_err(|(key, wrong)| at(&[key])(wrong))?;
    }
    check_count(&config.mcp, "MCP servers", McpServerConfig::MOST).map_err(at(&["mcp"]))?;
    for (name, server) in &config.mcp {
        let at = |keys: &[&str]| at(&[&["mcp", name.as_str()][..], keys].concat());
        // Named like a tier: the name is typed, and the names of its tools begin with it.
        TierId::new(name.clone()).map_err(|why| at(&[])(why.replace("a tier", "an MCP server")))?;
        server.check().map_err(|(key, wrong)| at(&[key])(wrong))?;
        if !server.folder.is_empty() {
            whole_path(&server.folder).map_err(at(&["folder"]))?;
        }
        for folder in &server.read {
            whole_path(folder).map_err(at(&["read"]))?;
        }
    }
    Ok(())
}

fn check_server(server: &ServerConfig) -> Result<(), KeyProblem> {
    for (key, other, path) in [
        ("certificate", "key", &server.certificate),
        ("key", "certificate", &server.key),
    ] {
        if !path.is_empty() {
            whole_path(path).map_err(|wrong| (key, wrong))?;
        }
        if path.is_empty() && !(server.certificate.is_empty() && server.key.is_empty()) {
            let what = format!(
                "{other} is set and the other is not: set `certificate` and `key`, or neither to use a generated certificate"
            );
            return Err((key, what));
        }
    }
    for name in &server.names {
        ServerConfig::check_name(name).map_err(|wrong| ("names", wrong))?;
    }
    let at_once = server.requests_at_once;
    check_range(at_once, "", &ServerConfig::REQUESTS_AT_ONCE)
        .map_err(|wrong| ("requests_at_once", wrong))
}

/// `unit`: what follows the value in the message, such as ` tokens`.
fn check_range<T: PartialOrd + Display>(
    value: T,
    unit: &str,
    range: &RangeInclusive<T>,
) -> Result<(), String> {
    if range.contains(&value) {
        return Ok(());
    }
    let (least, most) = (range.start(), range.end());
    Err(format!("{value}{unit} is not between {least} and {most}"))
}

fn check_count<K, V>(all: &BTreeMap<K, V>, what: &str, most: usize) -> Result<(), String> {
    match all.len() {
        count if count > most => Err(format!(
            "there are {count} {what}, and the maximum is {most}"
        )),
        _ => Ok(()),
    }
}

fn check_contexts(contexts: &ContextsConfig) -> Result<(), KeyProblem> {
    let place = contexts.place().map_err(|wrong| ("store", wrong))?;
    if let Some(ContextStore::Folder(folder)) = place {
        whole_path(folder).map_err(|wrong| ("store", wrong))?;
    }
    let ContextsConfig {
        form: _,
        store: _,
        endpoint,
        region,
        access_key,
    } = contexts;
    for (key, text) in [
        ("endpoint", endpoint),
        ("region", region),
        ("access_key", access_key),
    ] {
        if text.len() > LONGEST_TEXT || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            let what = "it is too long, or contains spaces or other invalid characters";
            return Err((key, what.to_owned()));
        }
    }
    if !endpoint.is_empty() && !endpoint.starts_with("https://") && !endpoint.starts_with("http://")
    {
        let what = format!("\"{endpoint}\" is not a URL; start it with https://");
        return Err(("endpoint", what));
    }
    Ok(())
}

fn check_policy(config: &Config) -> Result<(), KeyProblem> {
    let policy = &config.policy;
    let home = &policy.home;
    if !home.is_empty() && !config.tiers.keys().any(|id| id.as_str() == home) {
        let what = format!("\"{home}\" is not a tier in this configuration");
        return Err(("home", what));
    }
    let (patience, most) = (policy.patience, PolicyConfig::MOST_PATIENCE);
    if patience > most {
        let what = format!("\"{patience}\" is more than \"{most}\"");
        return Err(("patience", what));
    }
    let (battery, most) = (policy.battery_below, PolicyConfig::MOST_BATTERY);
    if battery > most {
        let what = format!("{battery} is more than {most} percent");
        return Err(("battery_below", what));
    }
    Ok(())
}

fn check_tier(tier: &TierConfig) -> Result<(), KeyProblem> {
    let TierConfig {
        model,
        engine,
        profile: _,
        context,
        kv_cache: _,
        paging: _,
        approximate: _,
        experts_used,
        threads,
        batch,
        gpu_layers: _,
        lookup: _,
        draft_model,
        thinking: _,
        sampling,
        idle_unload: _,
        pinned,
    } = tier;
    check_path(model).map_err(|wrong| ("model", wrong))?;
    if *experts_used == Some(0) {
        return Err(("experts_used", "a token uses at least 1 expert".to_owned()));
    }
    if let (Engine::Endpoint(_), true) = (engine, *pinned) {
        let what = "an endpoint cannot be pinned: nothing is loaded for it";
        return Err(("pinned", what.to_owned()));
    }
    if let Engine::Endpoint(endpoint) = engine
        && endpoint.dialect == Dialect::Anthropic
        && model.trim().is_empty()
    {
        let what = "empty: Anthropic's API needs a model, such as \"claude-sonnet-4-6\"";
        return Err(("model", what.to_owned()));
    }
    check_path(draft_model).map_err(|wrong| ("draft_model", wrong))?;
    sampling
        .check()
        .map_err(|(key, wrong)| ("sampling", format!("{key}: {wrong}")))?;
    if let Choice::Fixed(context) = context {
        check_range(*context, " tokens", &TierConfig::CONTEXT)
            .map_err(|wrong| ("context", wrong))?;
    }
    if *threads > MOST_THREADS {
        let what = format!("{threads} is more than {MOST_THREADS}; 0 chooses automatically");
        return Err(("threads", what));
    }
    check_range(*batch, " tokens", &TierConfig::BATCH).map_err(|wrong| ("batch", wrong))
}

fn check_chain(name: &TierId, chain: &ChainConfig, config: &Config) -> Result<(), KeyProblem> {
    let steps = |wrong: String| Err(("steps", wrong));
    if config.tiers.contains_key(name) {
        return steps(format!("\"{name}\" is already the name of a tier"));
    }
    let count = chain.tiers().count();
    let most = ChainConfig::MOST_STEPS;
    if count == 0 || chain.steps.len() > most {
        let wrong = format!("name 1 to {most} tiers, such as [\"primary\", \"queue\"]");
        return steps(wrong);
    }
    if let Some(unknown) = chain.tiers().find(|tier| !config.tiers.contains_key(tier)) {
        return steps(format!("\"{unknown}\" is not a tier in this configuration"));
    }
    let queued = chain.steps.iter().position(|step| *step == Step::Queue);
    if queued.is_some_and(|at| at + 1 < chain.steps.len()) {
        return steps("\"queue\" must be the last step".to_owned());
    }
    if chain.retries > ChainConfig::MOST_RETRIES {
        let most = ChainConfig::MOST_RETRIES;
        return Err(("retries", format!("{} is more than {most}", chain.retries)));
    }
    for (key, span) in [("wait", chain.wait), ("time", chain.time)] {
        let longest = ChainConfig::LONGEST;
        if span < Span::seconds(1) || span > longest {
            let wrong = format!("\"{span}\" is not between \"1s\" and \"{longest}\"");
            return Err((key, wrong));
        }
    }
    Ok(())
}

fn check_queue(queue: &QueueConfig) -> Result<(), KeyProblem> {
    let QueueConfig {
        at_once,
        keep,
        bytes,
        webhook_hosts,
    } = queue;
    check_range(*at_once, "", &QueueConfig::AT_ONCE).map_err(|wrong| ("at_once", wrong))?;
    let least = QueueConfig::LEAST_KEPT;
    if *keep < least {
        let wrong = format!("\"{keep}\" is less than \"{least}\"");
        return Err(("keep", wrong));
    }
    let least = QueueConfig::LEAST_BYTES;
    if *bytes < least {
        let wrong =
            format!("\"{bytes}\" is less than \"{least}\", which the largest request needs");
        return Err(("bytes", wrong));
    }
    for host in webhook_hosts {
        ServerConfig::check_name(host).map_err(|wrong| ("webhook_hosts", wrong))?;
    }
    Ok(())
}

fn check_path(text: &str) -> Result<(), String> {
    if text.len() > LONGEST_TEXT || text.chars().any(char::is_control) {
        return Err("this is not a valid file name".to_owned());
    }
    Ok(())
}

/// Checks that a path does not depend on the working directory.
fn whole_path(text: &str) -> Result<(), String> {
    check_path(text)?;
    if text == "~" || text.starts_with("~/") || Path::new(text).is_absolute() {
        return Ok(());
    }
    Err(format!(
        "\"{text}\" is not a full path; start it with / or ~/"
    ))
}

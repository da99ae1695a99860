//! Parses and checks a configuration. Errors name the line and the key.

use crate::address;
use serde_ignored::Path as Ignored;
use std::{ops::Range, path::Path};
use tierbar_core::{
    Code, Config, Error, TierId,
    config::{
        ChainConfig, Dialect, DownloadsConfig, Engine, PolicyConfig, QueueConfig, ScheduleConfig,
        ServerConfig, Span, Step, TierConfig,
    },
};
use toml_edit::{Document, Item, TableLike};

/// More threads than any current machine has cores.
const MOST_THREADS: u16 = 1024;
const LONGEST_TEXT: usize = 4096;

#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) config: Config,
    /// Notices about unknown keys.
    pub(crate) notices: Vec<String>,
}

/// # Errors
/// `ConfigInvalid` with the line.
pub(crate) fn parse(text: &str) -> Result<Parsed, Error> {
    let source = Source::new(text)?;
    let mut unknown = Vec::new();
    let deserializer = toml::Deserializer::parse(text)
        .map_err(|error| source.wrong(error.span(), error.message()))?;
    let config: Config = serde_ignored::deserialize(deserializer, |path| unknown.push(keys(&path)))
        .map_err(|error| source.wrong(error.span(), error.message()))?;
    check(&config).map_err(|Problem { keys, wrong }| source.wrong(source.span(&keys), &wrong))?;
    let notices = unknown
        .iter()
        .map(|keys| {
            let line = source.span(keys).map_or_else(String::new, |span| {
                format!(" line {}", source.line(span.start))
            });
            format!(
                "config.toml{line}: the key {} is unknown and has no effect",
                keys.join(".")
            )
        })
        .collect();
    Ok(Parsed { config, notices })
}

/// An invalid value of the right type.
struct Problem {
    keys: Vec<String>,
    wrong: String,
}

fn check(config: &Config) -> Result<(), Problem> {
    let at = |keys: &[&str]| {
        let keys = keys.iter().map(|key| (*key).to_owned()).collect();
        move |wrong: String| Problem { keys, wrong }
    };
    let address = address::parse(&config.listen).map_err(at(&["listen"]))?;
    let server = &config.server;
    address::check_network(address, server.network).map_err(at(&["listen"]))?;
    for (key, other, path) in [
        ("certificate", "key", &server.certificate),
        ("key", "certificate", &server.key),
    ] {
        if !path.is_empty() {
            whole_path(path).map_err(at(&["server", key]))?;
        }
        if path.is_empty() && !(server.certificate.is_empty() && server.key.is_empty()) {
            let what = format!(
                "{other} is set and the other is not: set `certificate` and `key`, or neither to use a generated certificate"
            );
            return Err(at(&["server", key])(what));
        }
    }
    for name in &server.names {
        ServerConfig::check_name(name).map_err(at(&["server", "names"]))?;
    }
    let at_once = server.requests_at_once;
    if !ServerConfig::REQUESTS_AT_ONCE.contains(&at_once) {
        let (least, most) = (
            ServerConfig::REQUESTS_AT_ONCE.start(),
            ServerConfig::REQUESTS_AT_ONCE.end(),
        );
        let what = format!("{at_once} is not between {least} and {most}");
        return Err(at(&["server", "requests_at_once"])(what));
    }
    path(&config.models_dir).map_err(at(&["models_dir"]))?;
    for folder in &config.library.folders {
        whole_path(folder).map_err(at(&["library", "folders"]))?;
    }
    let at_once = config.downloads.at_once;
    if !DownloadsConfig::AT_ONCE.contains(&at_once) {
        let (least, most) = (
            DownloadsConfig::AT_ONCE.start(),
            DownloadsConfig::AT_ONCE.end(),
        );
        return Err(at(&["downloads", "at_once"])(format!(
            "{at_once} is not between {least} and {most}"
        )));
    }
    for allowed in &config.allowed_origins {
        origin(allowed).map_err(at(&["allowed_origins"]))?;
    }
    let home = &config.policy.home;
    if !home.is_empty() && !config.tiers.keys().any(|id| id.as_str() == home) {
        let what = format!("\"{home}\" is not a tier in this configuration");
        return Err(at(&["policy", "home"])(what));
    }
    let (patience, most) = (config.policy.patience, PolicyConfig::MOST_PATIENCE);
    if patience > most {
        let what = format!("\"{patience}\" is more than \"{most}\"");
        return Err(at(&["policy", "patience"])(what));
    }
    let (battery, most) = (config.policy.battery_below, PolicyConfig::MOST_BATTERY);
    if battery > most {
        let what = format!("{battery} is more than {most} percent");
        return Err(at(&["policy", "battery_below"])(what));
    }
    for (name, chain) in &config.chains {
        let at = |(key, wrong)| at(&["chains", name.as_str(), key])(wrong);
        self::chain(name, chain, config).map_err(at)?;
    }
    queue(&config.queue).map_err(|(key, wrong)| at(&["queue", key])(wrong))?;
    for (id, tier) in &config.tiers {
        let TierConfig {
            model,
            engine,
            context,
            kv_cache: _,
            threads,
            batch,
            gpu_layers: _,
            lookup: _,
            draft_model,
            idle_unload: _,
            pinned,
        } = tier;
        let at = |key| at(&["tiers", id.as_str(), key]);
        path(model).map_err(at("model"))?;
        if let (Engine::Endpoint(_), true) = (engine, *pinned) {
            return Err(at("pinned")(
                "an endpoint cannot be pinned: nothing is loaded for it".to_owned(),
            ));
        }
        if let Engine::Endpoint(endpoint) = engine
            && endpoint.dialect == Dialect::Anthropic
            && model.trim().is_empty()
        {
            return Err(at("model")(
                "empty: Anthropic's API needs a model, such as \"claude-sonnet-4-6\"".to_owned(),
            ));
        }
        path(draft_model).map_err(at("draft_model"))?;
        if !TierConfig::CONTEXT.contains(context) {
            let (least, most) = (TierConfig::CONTEXT.start(), TierConfig::CONTEXT.end());
            return Err(at("context")(format!(
                "{context} tokens is not between {least} and {most}"
            )));
        }
        if *threads > MOST_THREADS {
            return Err(at("threads")(format!(
                "{threads} is more than {MOST_THREADS}; 0 chooses automatically"
            )));
        }
        if !TierConfig::BATCH.contains(batch) {
            let (least, most) = (TierConfig::BATCH.start(), TierConfig::BATCH.end());
            return Err(at("batch")(format!(
                "{batch} tokens is not between {least} and {most}"
            )));
        }
    }
    if config.schedules.len() > ScheduleConfig::MOST {
        let what = format!(
            "there are {} schedules, and the maximum is {}",
            config.schedules.len(),
            ScheduleConfig::MOST
        );
        return Err(at(&["schedules"])(what));
    }
    for (name, schedule) in &config.schedules {
        let at = |keys: &[&str]| at(&[&["schedules", name.as_str()][..], keys].concat());
        // Named like a tier: the name is typed, and is part of API paths.
        TierId::new(name.clone()).map_err(|why| at(&[])(why.replace("a tier", "a schedule")))?;
        schedule.check().map_err(|(key, wrong)| at(&[key])(wrong))?;
    }
    Ok(())
}

/// # Errors
/// The invalid key, and why.
fn chain(
    name: &TierId,
    chain: &ChainConfig,
    config: &Config,
) -> Result<(), (&'static str, String)> {
    let steps = |wrong: String| Err(("steps", wrong));
    if config.tiers.contains_key(name) {
        return steps(format!("\"{name}\" is already the name of a tier"));
    }
    let count = chain.tiers().count();
    if count == 0 || chain.steps.len() > ChainConfig::MOST_STEPS {
        let most = ChainConfig::MOST_STEPS;
        return steps(format!(
            "name 1 to {most} tiers, such as [\"primary\", \"queue\"]"
        ));
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
        if span < Span::seconds(1) || span > ChainConfig::LONGEST {
            let longest = ChainConfig::LONGEST;
            return Err((
                key,
                format!("\"{span}\" is not between \"1s\" and \"{longest}\""),
            ));
        }
    }
    Ok(())
}

/// Checks the queue; returns the invalid key, and why.
fn queue(queue: &QueueConfig) -> Result<(), (&'static str, String)> {
    let QueueConfig {
        at_once,
        keep,
        bytes,
        webhook_hosts,
    } = queue;
    if !QueueConfig::AT_ONCE.contains(at_once) {
        let (least, most) = (QueueConfig::AT_ONCE.start(), QueueConfig::AT_ONCE.end());
        let wrong = format!("{at_once} is not between {least} and {most}");
        return Err(("at_once", wrong));
    }
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

fn path(text: &str) -> Result<(), String> {
    if text.len() > LONGEST_TEXT || text.chars().any(char::is_control) {
        return Err("this is not a valid file name".to_owned());
    }
    Ok(())
}

/// Checks that a path does not depend on the working directory.
fn whole_path(text: &str) -> Result<(), String> {
    path(text)?;
    if text == "~" || text.starts_with("~/") || Path::new(text).is_absolute() {
        return Ok(());
    }
    Err(format!(
        "\"{text}\" is not a full path; start it with / or ~/"
    ))
}

fn origin(origin: &str) -> Result<(), String> {
    let plain = |text: &str, more: &[u8]| {
        !text.is_empty()
            && text
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || more.contains(&b))
    };
    if origin
        .split_once("://")
        .is_some_and(|(scheme, host)| plain(scheme, b"+-.") && plain(host, b"-.:[]"))
    {
        return Ok(());
    }
    Err(format!(
        "\"{origin}\" is not an origin: use scheme, host and port without a path, such as \"http://localhost:3000\""
    ))
}

/// The text with the position of each key.
struct Source<'a> {
    text: &'a str,
    document: Document<&'a str>,
}

impl<'a> Source<'a> {
    fn new(text: &'a str) -> Result<Self, Error> {
        Document::parse(text)
            .map(|document| Self { text, document })
            .map_err(|error| {
                wrong_at(
                    line(text, error.span().map_or(0, |span| span.start)),
                    error.message(),
                )
            })
    }

    fn line(&self, offset: usize) -> usize {
        line(self.text, offset)
    }

    /// Returns the position of a key's value, or of the nearest table around it.
    fn span(&self, keys: &[String]) -> Option<Range<usize>> {
        let mut item = self.document.as_item();
        let mut span = None;
        for key in keys {
            let Some((key, inner)) = item
                .as_table_like()
                .and_then(|table| table.get_key_value(key))
            else {
                break;
            };
            span = key.span().or(span);
            item = inner;
        }
        span
    }

    fn wrong(&self, span: Option<Range<usize>>, message: &str) -> Error {
        let Some(span) = span else {
            return Error::new(Code::ConfigInvalid, format!("config.toml: {message}"));
        };
        let mut keys = Vec::new();
        let named = find(self.document.as_table(), span.start, &mut keys);
        let message = if named {
            format!("{}: {message}", keys.join("."))
        } else {
            message.to_owned()
        };
        wrong_at(self.line(span.start), &message)
    }
}

/// Finds the keys of the value or key at `offset`.
fn find(table: &dyn TableLike, offset: usize, keys: &mut Vec<String>) -> bool {
    for (name, item) in table.iter() {
        keys.push(name.to_owned());
        let at = |span: Option<Range<usize>>| span.is_some_and(|span| span.contains(&offset));
        let inner = item
            .as_table_like()
            .is_some_and(|inner| find(inner, offset, keys));
        let key = table
            .get_key_value(name)
            .is_some_and(|(key, _)| at(key.span()));
        if inner || key || (!matches!(item, Item::Table(_)) && at(item.span())) {
            return true;
        }
        keys.pop();
    }
    false
}

fn wrong_at(line: usize, message: &str) -> Error {
    Error::new(
        Code::ConfigInvalid,
        format!(
            "config.toml line {line}: {}",
            message.trim_end_matches('\n')
        ),
    )
    .detail("line", line)
}

fn line(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    before.iter().filter(|&&byte| byte == b'\n').count() + 1
}

pub(crate) fn keys(path: &Ignored<'_>) -> Vec<String> {
    let mut keys = match path {
        Ignored::Root => return Vec::new(),
        Ignored::Seq { parent, index } => [keys(parent), vec![index.to_string()]].concat(),
        Ignored::Map { parent, key } => [keys(parent), vec![key.clone()]].concat(),
        Ignored::Some { parent }
        | Ignored::NewtypeStruct { parent }
        | Ignored::NewtypeVariant { parent } => keys(parent),
    };
    keys.retain(|key| !key.is_empty());
    keys
}

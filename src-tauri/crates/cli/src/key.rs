//! `tierbar key`: creates, lists and revokes API keys.

use crate::{
    client::{Client, admin_path, read},
    output,
};
use jiff::{Timestamp, tz::TimeZone};
use serde::Deserialize;
use serde_json::json;
use std::path::PathBuf;
use tierbar_core::{
    Code, Error,
    keys::{ApiKey, KeyLimits},
    nearest::suggest,
};

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
    /// Create an API key; it is shown only once
    Add {
        /// Name of the key, from letters, digits, '-', '_' and '.'
        name: String,
        /// Maximum requests per minute; also the burst size
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        requests_per_minute: Option<u32>,
        /// Maximum tokens per day in prompts and answers; refills evenly
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
        tokens_per_day: Option<u64>,
        /// Maximum requests at the same time, including waiting ones
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        at_once: Option<u32>,
    },
    /// List API keys with their limits and last use
    List,
    /// Revoke an API key; answers in progress finish
    Revoke {
        /// Name of the key
        name: String,
    },
}

#[derive(Debug, Deserialize)]
struct KeyList {
    keys: Vec<ApiKey>,
}

#[derive(Debug, Deserialize)]
struct NewKey {
    key: String,
}

pub(crate) async fn run(home: Option<PathBuf>, args: Args) -> Result<(), Error> {
    let client = Client::running_or_own(home).await?;
    let as_json = args.json;
    let outcome = match args.command {
        Some(Command::Add {
            name,
            requests_per_minute,
            tokens_per_day,
            at_once,
        }) => {
            let limits = KeyLimits {
                requests_per_minute,
                tokens_per_day,
                at_once,
            };
            add(&client, &name, limits, as_json).await
        }
        None | Some(Command::List) => list(&client, as_json).await,
        Some(Command::Revoke { name }) => revoke(&client, &name, as_json).await,
    };
    client.close().await;
    outcome
}

async fn add(client: &Client, name: &str, limits: KeyLimits, as_json: bool) -> Result<(), Error> {
    let KeyLimits {
        requests_per_minute,
        tokens_per_day,
        at_once,
    } = limits;
    let body = json!({
        "name": name, "requests_per_minute": requests_per_minute, "tokens_per_day": tokens_per_day, "at_once": at_once,
    });
    let answer = client.post("/tierbar/v1/keys", &body).await?;
    if as_json {
        output::write_json(&answer);
    } else {
        let NewKey { key } = read(answer)?;
        // Alone on stdout, so that a script can capture it.
        output::write_line(&key);
    }
    output::error_line("This key is not shown again. Clients send it as their API key.");
    Ok(())
}

async fn list(client: &Client, as_json: bool) -> Result<(), Error> {
    let listed = client.get("/tierbar/v1/keys").await?;
    if as_json {
        output::write_json(&listed);
        return Ok(());
    }
    let KeyList { keys } = read(listed)?;
    if keys.is_empty() {
        output::error_line(
            "There are no API keys. To create one for another machine: tierbar key add laptop",
        );
    }
    for key in keys {
        output::write_line(&describe(&key));
    }
    Ok(())
}

async fn revoke(client: &Client, name: &str, as_json: bool) -> Result<(), Error> {
    let revoked = client.delete(&admin_path(&["keys", name], &[])).await;
    if let Err(unknown) = &revoked
        && unknown.code == Code::NotFound
    {
        let KeyList { keys } = read(client.get("/tierbar/v1/keys").await?)?;
        let active = keys.iter().filter(|key| key.revoked_ms.is_none());
        let names = active.map(|key| key.name.as_str());
        let hint = suggest(name, names, "`tierbar key list` lists the keys");
        return Err(unknown.clone().hint(hint));
    }
    revoked?;
    let sentence = format!("Revoked {name}. Its answers in progress finish.");
    output::write_outcome(as_json, &json!({"revoked": name}), &sentence);
    Ok(())
}

fn describe(key: &ApiKey) -> String {
    let used = match (key.revoked_ms, key.last_used_ms) {
        (Some(at), _) => format!("revoked {}", format_time(at)),
        (None, Some(at)) => format!("last used {}", format_time(at)),
        (None, None) => "never used".to_owned(),
    };
    let limits = [
        (
            key.limits.requests_per_minute.map(u64::from),
            "requests per minute",
        ),
        (key.limits.tokens_per_day, "tokens per day"),
        (key.limits.at_once.map(u64::from), "at once"),
    ];
    let limits: Vec<_> = limits
        .iter()
        .filter_map(|(limit, of)| Some(format!("{} {of}", (*limit)?)))
        .collect();
    let limits = match limits.as_slice() {
        [] => "no limits".to_owned(),
        limits => limits.join(", "),
    };
    format!("{:<24} {used:<28} {limits}", key.name)
}

fn format_time(at_ms: u64) -> String {
    let at = i64::try_from(at_ms).unwrap_or_default();
    let at = Timestamp::from_millisecond(at).unwrap_or_default();
    at.to_zoned(TimeZone::system())
        .strftime("%F %R")
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_listed_with_its_use_and_limits() {
        let mut key = ApiKey {
            name: "laptop".to_owned(),
            limits: KeyLimits::default(),
            created_ms: 0,
            last_used_ms: None,
            revoked_ms: None,
        };
        let words = |key: &ApiKey| {
            describe(key)
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(words(&key), "laptop never used no limits");
        key.limits.requests_per_minute = Some(60);
        key.limits.at_once = Some(2);
        key.last_used_ms = Some(1_790_000_000_000);
        assert!(
            words(&key).starts_with("laptop last used 2026-09-2"),
            "{}",
            words(&key)
        );
        assert!(words(&key).ends_with("60 requests per minute, 2 at once"));
        key.revoked_ms = key.last_used_ms;
        assert!(words(&key).starts_with("laptop revoked 2026-09-2"));
    }
}

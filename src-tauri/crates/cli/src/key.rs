//! `tierbar key`: creates, lists and revokes API keys.

use crate::{
    Group,
    client::{Client, admin_path, with_host},
    output::{self, format_time},
};
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::PathBuf;
use tierbar_core::{
    Code, Error,
    keys::{ApiKey, KeyLimits},
    nearest::suggest,
};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Create an API key; it is shown only once
    Add(Add),
    /// List API keys with their limits and last use
    List,
    /// Revoke an API key; answers in progress finish
    Revoke {
        /// Name of the key
        name: String,
    },
}

#[derive(Debug, Serialize, clap::Args)]
pub(crate) struct Add {
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
}

const PATH: &str = "/tierbar/v1/keys";

#[derive(Debug, Deserialize)]
struct NewKey {
    key: String,
}

pub(crate) async fn run(home: Option<PathBuf>, args: Group<Command>) -> Result<(), Error> {
    with_host(home, async |client| match args.command {
        Some(Command::Add(key)) => add(client, &json!(key), args.json).await,
        None | Some(Command::List) => {
            let none =
                "There are no API keys. To create one for another machine: tierbar key add laptop";
            output::write_list(args.json, client.get(PATH).await?, "keys", none, describe)
        }
        Some(Command::Revoke { name }) => revoke(client, &name, args.json).await,
    })
    .await
}

async fn add(client: &Client, body: &Value, as_json: bool) -> Result<(), Error> {
    let answer = client.post(PATH, body).await?;
    // Alone on stdout, so that a script can capture it.
    output::write_answer(as_json, answer, |NewKey { key }| key + "\n")?;
    output::error_line("This key is not shown again. Clients send it as their API key.");
    Ok(())
}

async fn revoke(client: &Client, name: &str, as_json: bool) -> Result<(), Error> {
    let revoked = client.delete(&admin_path(&["keys", name], &[])).await;
    if let Err(unknown) = &revoked
        && unknown.code == Code::NotFound
    {
        let keys: Vec<ApiKey> = client.list(PATH, "keys").await?;
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
    let time = |at_ms: u64| format_time(at_ms / 1000, &TimeZone::system());
    let used = match (key.revoked_ms, key.last_used_ms) {
        (Some(at), _) => format!("revoked {}", time(at)),
        (None, Some(at)) => format!("last used {}", time(at)),
        (None, None) => "never used".to_owned(),
    };
    let KeyLimits {
        requests_per_minute,
        tokens_per_day,
        at_once,
    } = key.limits;
    let limits = [
        requests_per_minute.map(|limit| format!("{limit} requests per minute")),
        tokens_per_day.map(|limit| format!("{limit} tokens per day")),
        at_once.map(|limit| format!("{limit} at once")),
    ];
    let limits: Vec<_> = limits.into_iter().flatten().collect();
    let limits = match limits.as_slice() {
        [] => "no limits".to_owned(),
        limits => limits.join(", "),
    };
    format!("{:<24} {used:<28} {limits}", key.name)
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

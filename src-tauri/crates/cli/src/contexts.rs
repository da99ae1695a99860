//! `tierbar contexts`: conversations' KV caches in files, which save a long prefill.

use crate::{
    client::{Client, read},
    output,
};
use jiff::{Timestamp, tz::TimeZone};
use serde::Deserialize;
use serde_json::json;
use std::path::PathBuf;
use tierbar_core::{Error, units::file_size};

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
    /// List saved contexts, newest first
    List,
    /// Save the last conversation of a tier
    Save {
        /// Name for the context; one of this name is replaced
        name: String,
        /// Tier [default: the loaded one]
        #[arg(long, value_name = "TIER")]
        tier: Option<String>,
    },
    /// Load a context into memory, with the model that it belongs to
    Load {
        /// Name of the context
        name: String,
        /// Tier [default: one that the context fits]
        #[arg(long, value_name = "TIER")]
        tier: Option<String>,
    },
    /// Delete a saved context
    Rm {
        /// Name of the context
        name: String,
    },
}

#[derive(Debug, Deserialize)]
struct List {
    data: Vec<Saved>,
}

#[derive(Debug, Deserialize)]
struct Saved {
    name: String,
    model: String,
    tokens: u64,
    bytes: u64,
    created: i64,
}

pub(crate) async fn run(home: Option<PathBuf>, args: Args) -> Result<(), Error> {
    // What is saved from memory, or loaded into it, is that of a host that stays.
    let stays = matches!(
        args.command,
        Some(Command::Save { .. } | Command::Load { .. })
    );
    let client = if stays {
        Client::running(home.as_ref())?
    } else {
        Client::running_or_own(home).await?
    };
    let outcome = match args.command {
        None | Some(Command::List) => list(&client, args.json).await,
        Some(Command::Save { name, tier }) => {
            call(&client, "save", &name, tier.as_deref(), args.json).await
        }
        Some(Command::Load { name, tier }) => {
            call(&client, "load", &name, tier.as_deref(), args.json).await
        }
        Some(Command::Rm { name }) => remove(&client, &name, args.json).await,
    };
    client.close().await;
    outcome
}

async fn list(client: &Client, as_json: bool) -> Result<(), Error> {
    let answer = client.get("/v1/context").await?;
    if as_json {
        output::json(&answer);
        return Ok(());
    }
    let List { data } = read(answer)?;
    if data.is_empty() {
        output::error_line(
            "There are no saved contexts. Save the last conversation of a tier: tierbar contexts save NAME",
        );
    }
    for saved in &data {
        output::line(&line(saved, &TimeZone::system()));
    }
    Ok(())
}

/// Saves or loads a context.
async fn call(
    client: &Client,
    verb: &str,
    name: &str,
    tier: Option<&str>,
    as_json: bool,
) -> Result<(), Error> {
    let body = json!({"name": name, "model": tier});
    let answer = client.post(&format!("/v1/context/{verb}"), &body).await?;
    if as_json {
        output::json(&answer);
        return Ok(());
    }
    output::line(&line(&read(answer)?, &TimeZone::system()));
    Ok(())
}

async fn remove(client: &Client, name: &str, as_json: bool) -> Result<(), Error> {
    let answer = client
        .post("/v1/context/delete", &json!({"name": name}))
        .await?;
    output::done(as_json, &answer, &format!("Deleted {name}."));
    Ok(())
}

fn line(saved: &Saved, zone: &TimeZone) -> String {
    let created = Timestamp::from_second(saved.created).unwrap_or(Timestamp::UNIX_EPOCH);
    let created = created
        .to_zoned(zone.clone())
        .strftime("%Y-%m-%d %H:%M")
        .to_string();
    format!(
        "{}  {created}  {} tokens of {}, {}",
        saved.name,
        saved.tokens,
        saved.model,
        file_size(saved.bytes)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_has_its_model_and_size() {
        let saved = json!({
            "name": "book", "model": "m-Q4", "tokens": 12_000, "bytes": 1_500_000_000, "created": 1_784_548_865, "kv_cache": "f16",
        });
        assert_eq!(
            line(&serde_json::from_value(saved).unwrap(), &TimeZone::UTC),
            "book  2026-07-20 12:01  12000 tokens of m-Q4, 1.5 GB"
        );
    }
}

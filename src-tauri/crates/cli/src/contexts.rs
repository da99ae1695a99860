//! `tierbar contexts`: conversations' KV caches in files, which save a long prefill.

use crate::{
    Group,
    client::{Client, read_answer, with_client},
    output::{self, format_time},
};
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::PathBuf;
use tierbar_core::{Error, config::ContextForm, units::file_size};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// List saved contexts, newest first
    List {
        /// List those in the store, rather than those on this machine
        #[arg(long)]
        store: bool,
    },
    /// Save the last conversation of a tier
    Save {
        /// Name for the context
        name: String,
        /// Replace another context of this name
        #[arg(long)]
        replace: bool,
        /// Tier [default: the loaded one]
        #[arg(long, value_name = "TIER")]
        tier: Option<String>,
        /// Save it in about a third of the size; answers may differ slightly
        #[arg(long)]
        compact: bool,
        /// Save it exactly as it is in memory, regardless of `contexts.form`
        #[arg(long, conflicts_with = "compact")]
        exact: bool,
    },
    /// Load a context into memory, with the model that it belongs to
    Load {
        /// Name of the context
        name: String,
        /// Tier [default: one that the context fits]
        #[arg(long, value_name = "TIER")]
        tier: Option<String>,
    },
    /// Encrypt a context and upload it to the store
    Push {
        /// Name of the context
        name: String,
        /// Replace another context of this name in the store
        #[arg(long)]
        replace: bool,
    },
    /// Download a context from the store
    Pull {
        /// Name of the context
        name: String,
        /// Replace another context of this name on this machine
        #[arg(long)]
        replace: bool,
    },
    /// Delete a saved context
    #[command(visible_alias = "delete")]
    Rm {
        /// Name of the context
        name: String,
        /// Delete it from the store, rather than from this machine
        #[arg(long)]
        store: bool,
    },
}

#[derive(Debug, Deserialize)]
struct SavedContext {
    name: String,
    model: String,
    tokens: u64,
    bytes: u64,
    #[serde(default)]
    raw_bytes: u64,
    created: i64,
    #[serde(default)]
    form: ContextForm,
}

pub(crate) async fn run(home: Option<PathBuf>, args: Group<Command>) -> Result<(), Error> {
    let as_json = args.json;
    let client = match args.command {
        // What is saved from memory, or loaded into it, is that of a host that stays.
        Some(Command::Save { .. } | Command::Load { .. }) => Client::running(home.as_ref())?,
        _ => Client::running_or_own(home).await?,
    };
    with_client(client, async |client| match args.command {
        None => list(client, false, as_json).await,
        Some(Command::List { store }) => list(client, store, as_json).await,
        Some(Command::Save {
            name,
            replace,
            tier,
            compact,
            exact,
        }) => {
            let form = match (compact, exact) {
                (true, _) => Some(ContextForm::Compact),
                (_, true) => Some(ContextForm::Exact),
                _ => None,
            };
            let body = json!({"name": name, "model": tier, "form": form, "replace": replace});
            call(client, "save", &body, as_json).await
        }
        Some(Command::Load { name, tier }) => {
            let body = json!({"name": name, "model": tier});
            call(client, "load", &body, as_json).await
        }
        Some(Command::Push { name, replace }) => {
            let body = json!({"name": name, "replace": replace});
            call(client, "upload", &body, as_json).await
        }
        Some(Command::Pull { name, replace }) => {
            let body = json!({"name": name, "replace": replace});
            call(client, "download", &body, as_json).await
        }
        Some(Command::Rm { name, store }) => remove(client, &name, store, as_json).await,
    })
    .await
}

async fn list(client: &Client, store: bool, as_json: bool) -> Result<(), Error> {
    let (path, none) = match store {
        true => (
            "/v1/context/store",
            "There are no contexts in the store. Upload one: tierbar contexts push NAME",
        ),
        false => (
            "/v1/context",
            "There are no saved contexts. Save the last conversation of a tier: tierbar contexts save NAME",
        ),
    };
    output::write_list(as_json, client.get(path).await?, "data", none, |saved| {
        render_context(saved, &TimeZone::system())
    })
}

/// Saves or loads a context, or copies it to the store or from it.
async fn call(client: &Client, verb: &str, body: &Value, as_json: bool) -> Result<(), Error> {
    let answer = client.post(&format!("/v1/context/{verb}"), body).await;
    let answer = answer.map_err(without_fields)?;
    if as_json {
        output::write_json(&answer);
        return Ok(());
    }
    let saved: SavedContext = read_answer(answer)?;
    output::write_line(&render_context(&saved, &TimeZone::system()));
    if body["form"] == json!(ContextForm::Compact) && saved.form == ContextForm::Exact {
        output::error_line(
            "It was saved exactly: only contexts of at least 68 tokens with an f16 KV cache have a compact form.",
        );
    }
    Ok(())
}

/// The host's hint names fields of the API, which this command does not send.
fn without_fields(error: Error) -> Error {
    let names_fields = error.hint.as_ref();
    if names_fields.is_some_and(|hint| hint.contains("`messages`")) {
        return error.hint("ask the tier a question first, such as with `tierbar chat`");
    }
    error
}

async fn remove(client: &Client, name: &str, store: bool, as_json: bool) -> Result<(), Error> {
    let answer = client
        .post("/v1/context/delete", &json!({"name": name, "store": store}))
        .await?;
    output::write_outcome(as_json, &answer, &format!("Deleted {name}."));
    if answer["versions_kept"] == true && !as_json {
        output::write_line(
            "The bucket has versioning, so it keeps older versions of the encrypted copy. Delete them with the bucket's own tools.",
        );
    }
    Ok(())
}

fn render_context(saved: &SavedContext, zone: &TimeZone) -> String {
    let created = format_time(saved.created, zone);
    let memory = if saved.raw_bytes > saved.bytes {
        format!(" ({} in memory)", file_size(saved.raw_bytes))
    } else {
        String::new()
    };
    let compact = match saved.form {
        ContextForm::Exact => "",
        ContextForm::Compact => ", compact",
    };
    format!(
        "{}  {created}  {} tokens of {}, {}{memory}{compact}",
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
        let mut saved = json!({
            "name": "book", "model": "m-Q4", "tokens": 12_000, "bytes": 1_500_000_000, "created": 1_784_548_865, "kv_cache": "f16",
        });
        let line = |saved: &serde_json::Value| {
            render_context(
                &serde_json::from_value(saved.clone()).unwrap(),
                &TimeZone::UTC,
            )
        };
        let expected = "book  2026-07-20 12:01  12000 tokens of m-Q4, 1.5 GB";
        assert_eq!(line(&saved), expected);
        saved["raw_bytes"] = 1_800_000_000_u64.into();
        assert_eq!(line(&saved), format!("{expected} (1.8 GB in memory)"));
        saved["form"] = "compact".into();
        assert_eq!(
            line(&saved),
            format!("{expected} (1.8 GB in memory), compact")
        );
    }
}

//! Whether something has the name that `--tier` gives.

use crate::client::{Client as Host, admin_path, read};
use serde::Deserialize;
use std::path::PathBuf;
use tierbar_connect::{Client, ClientServer};
use tierbar_core::{Code, Error, ModelKind, TierId, nearest::suggest};

/// What `GET /v1/models` lists: all that a request can name, but for other names of the models.
#[derive(Deserialize)]
struct ModelList {
    data: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    id: String,
}

/// The status, as far as it has names.
#[derive(Deserialize)]
struct Tiers {
    tiers: Vec<Tier>,
}

#[derive(Deserialize)]
struct Tier {
    id: String,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    kind: ModelKind,
    #[serde(default)]
    aliases: Vec<String>,
}

impl Tier {
    fn is_named(&self, name: &str) -> bool {
        self.id == name || is_named(name, self.model.as_slice(), &self.aliases)
    }
}

/// Without a running host, chains and models are not known, and any name is taken but the embedder's.
///
/// # Errors
/// `BadRequest` for a model that answers no chats; `ModelUnknown` with the names that there are; those of the host.
pub(super) async fn check(
    home: Option<&PathBuf>,
    server: &ClientServer,
    client: &Client,
    name: &str,
) -> Result<(), Error> {
    if server.embedder.as_ref().map(TierId::as_str) == Some(name) {
        return Err(answers_no_chats(server, client, name, ModelKind::Embedding));
    }
    if name == TierId::AUTO || server.tiers.iter().any(|tier| tier.id.as_str() == name) {
        return Ok(());
    }
    let Ok(host) = Host::running(home) else {
        return Ok(());
    };
    let ModelList { data } = read(host.get("/v1/models").await?)?;
    let Tiers { tiers } = read(host.get(&admin_path(&["status"], &[])).await?)?;
    let names: Vec<_> = data.into_iter().map(|entry| entry.id).collect();
    // A tier without a model exists all the same, and is not listed.
    let is_tier = tiers.iter().any(|tier| tier.id == name);
    let named = tiers.iter().filter(|tier| tier.is_named(name));
    let kinds: Vec<_> = named.map(|tier| tier.kind).collect();
    if let Some(&kind) = kinds.first()
        && !kinds.contains(&ModelKind::Chat)
    {
        return Err(answers_no_chats(server, client, name, kind));
    }
    let aliases: Vec<_> = tiers.into_iter().flat_map(|tier| tier.aliases).collect();
    if is_tier || is_named(name, &names, &aliases) {
        return Ok(());
    }
    let message = format!("there is no tier, chain or model \"{name}\"");
    let all = format!("use one of {}", names.join(", "));
    let known = names.iter().chain(&aliases).map(String::as_str);
    Err(Error::new(Code::ModelUnknown, message).hint(suggest(name, known, all)))
}

fn answers_no_chats(server: &ClientServer, client: &Client, name: &str, kind: ModelKind) -> Error {
    let what = match kind {
        ModelKind::Reranking => "ranks documents",
        _ => "turns texts into vectors",
    };
    let message = format!(
        "{name} {what} and answers no chats, which {} needs",
        client.name
    );
    let chats: Vec<_> = server.tiers.iter().map(|tier| tier.id.as_str()).collect();
    Error::new(Code::BadRequest, message).hint(match chats.is_empty() {
        true => "choose a model for a tier in Settings > Models, or run `tierbar setup`".to_owned(),
        false => format!("use one of {}", chats.join(", ")),
    })
}

/// As the server takes names: a model's with or without its ending, and other names in any case, with or without `:latest`.
fn is_named(name: &str, names: &[String], aliases: &[String]) -> bool {
    let plain = name.strip_suffix(":latest").unwrap_or(name);
    let id = plain.strip_suffix(".gguf").unwrap_or(plain);
    names.iter().any(|one| one == name || one == id)
        || aliases.iter().any(|one| one.eq_ignore_ascii_case(plain))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierbar_connect::{ClientTier, find};

    #[test]
    fn a_name_is_known_as_the_server_takes_it() {
        let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let names = owned(&["auto", "primary", "thorough", "gemma-4-E4B-Q4"]);
        let aliases = owned(&["gemma4:e4b"]);
        for known in [
            "thorough",
            "gemma-4-E4B-Q4",
            "gemma-4-E4B-Q4.gguf",
            "Gemma4:e4b",
            "gemma4:e4b:latest",
        ] {
            assert!(is_named(known, &names, &aliases), "{known}");
        }
        for unknown in ["primry", "Primary", "", "gemma4"] {
            assert!(!is_named(unknown, &names, &aliases), "{unknown}");
        }
    }
    #[tokio::test]
    async fn a_tier_that_answers_no_chats_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().to_owned();
        let mut server = ClientServer {
            url: "http://127.0.0.1:11435".to_owned(),
            key_required: false,
            tiers: Vec::new(),
            embedder: TierId::new(TierId::EMBEDDER).ok(),
            mcp_command: Vec::new(),
        };
        let codex = find("codex").unwrap();
        let refused = check(Some(&home), &server, codex, "embedder").await;
        let refused = refused.unwrap_err();
        assert_eq!(refused.code, Code::BadRequest);
        assert_eq!(
            refused.message,
            "embedder turns texts into vectors and answers no chats, which Codex needs"
        );
        assert!(refused.hint.unwrap().contains("tierbar setup"));
        server.tiers.push(ClientTier {
            id: TierId::new("fast").unwrap(),
            context_tokens: None,
            tools: None,
        });
        let refused = answers_no_chats(&server, codex, "scores", ModelKind::Reranking);
        assert!(refused.message.starts_with("scores ranks documents"));
        assert_eq!(refused.hint.as_deref(), Some("use one of fast"));
        assert!(check(Some(&home), &server, codex, "fast").await.is_ok());
        let tier: Tier = serde_json::from_str(
            r#"{"id": "vectors", "model": "minilm", "kind": "embedding", "aliases": ["all-minilm"]}"#,
        )
        .unwrap();
        for name in ["vectors", "minilm", "minilm.gguf", "all-minilm:latest"] {
            assert!(tier.is_named(name), "{name}");
        }
        assert!(!tier.is_named("fast"));
    }
}

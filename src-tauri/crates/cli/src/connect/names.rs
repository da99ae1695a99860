//! Whether something has the name that `--tier` gives.

use crate::client::Client as Host;
use serde_json::Value;
use std::path::PathBuf;
use tierbar_connect::{Client, ClientServer};
use tierbar_core::{
    Code, Error, ModelId, ModelKind, TierId, bad_request, nearest::suggest, status::TierStatus,
};

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
    // All that a request can name, but for other names of the models.
    let listed: Vec<Value> = host.list("/v1/models", "data").await?;
    let names = listed.iter().filter_map(|entry| entry["id"].as_str());
    let names: Vec<_> = names.collect();
    let tiers = host.tiers().await?;
    // A tier without a model exists all the same, and is not listed.
    let is_tier = tiers.iter().any(|tier| tier.id.as_str() == name);
    let named = tiers.iter().filter(|tier| is_tier_named(name, tier));
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
    let known = names
        .iter()
        .copied()
        .chain(aliases.iter().map(String::as_str));
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
    bad_request(message).hint(match chats.is_empty() {
        true => "choose a model for a tier in Settings > Models, or run `tierbar setup`".to_owned(),
        false => format!("use one of {}", chats.join(", ")),
    })
}

fn is_tier_named(name: &str, tier: &TierStatus) -> bool {
    let model: Vec<_> = tier.model.iter().map(ModelId::as_str).collect();
    tier.id.as_str() == name || is_named(name, &model, &tier.aliases)
}

/// As the server takes names: a model's with or without its ending, and other names in any case, with or without `:latest`.
fn is_named(name: &str, names: &[&str], aliases: &[String]) -> bool {
    let plain = name.strip_suffix(":latest").unwrap_or(name);
    let id = plain.strip_suffix(".gguf").unwrap_or(plain);
    names.contains(&name)
        || names.contains(&id)
        || aliases.iter().any(|one| one.eq_ignore_ascii_case(plain))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierbar_connect::{ClientTier, find};
    use tierbar_core::TierState;

    #[test]
    fn a_name_is_known_as_the_server_takes_it() {
        let names = ["auto", "primary", "thorough", "gemma-4-E4B-Q4"];
        let aliases = ["gemma4:e4b".to_owned()];
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
        let tier = TierStatus {
            model: Some(ModelId("minilm".to_owned())),
            kind: ModelKind::Embedding,
            aliases: vec!["all-minilm".to_owned()],
            ..TierStatus::new(TierId::new("vectors").unwrap(), TierState::Stopped)
        };
        for name in ["vectors", "minilm", "minilm.gguf", "all-minilm:latest"] {
            assert!(is_tier_named(name, &tier), "{name}");
        }
        assert!(!is_tier_named("fast", &tier));
    }
}

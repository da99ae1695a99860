//! Which tier gets a model that has just been downloaded: without one, no request would reach the model.

use super::{list, use_in};
use crate::{
    client::Client,
    confirm::{ask, can_ask},
    output,
};
use std::{
    path::Path,
    time::{Duration, Instant},
};
use tierbar_core::{
    Code, Error, TierId,
    download::DownloadStatus,
    fit::LibraryModel,
    status::{EngineKind, TierStatus},
};

/// The host gives the model to its tier right after the download, unless config.toml is invalid.
const ASSIGNED_WITHIN: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(100);

/// Asks for a tier on a terminal, and prints the command for it elsewhere. A model that a tier uses, or that none can use, is left.
pub(super) async fn offer(
    client: &Client,
    done: &DownloadStatus,
    may_ask: bool,
) -> Result<(), Error> {
    // The download is done, whatever becomes of the offer.
    let (Ok(list), Ok(tiers)) = (list::fetch_models(client).await, client.tiers().await) else {
        return Ok(());
    };
    let mut models = list.models.into_iter();
    let Some(model) = models.find(|model| is_of(model, done)) else {
        return Ok(());
    };
    if !model.tiers.is_empty() || model.error.is_some() {
        return Ok(());
    }
    let default = proposed_tier(&model, &tiers);
    let command = format!(
        "To use it: tierbar tier use {} {}",
        default.as_deref().unwrap_or("fast"),
        model.id
    );
    if !may_ask || !can_ask() {
        output::error_line(&command);
        return Ok(());
    }
    let question = question(&model, &tiers, default.as_deref());
    loop {
        let answer = ask(&question).await?;
        let tier = match (answer.as_deref(), &default) {
            (Some(""), Some(tier)) => tier.clone(),
            (None | Some("" | "n" | "no" | "none"), _) => {
                output::error_line(&command);
                return Ok(());
            }
            (Some(name), _) => name.to_owned(),
        };
        match use_in::choose(client, &tier, &model, false).await {
            Err(error) if matches!(error.code, Code::TierUnknown | Code::BadRequest) => {
                output::write_error(&error);
            }
            Ok(()) if use_in::tier_of_kind(use_in::kind(&model)).is_none() => {
                output::error_line(&format!("To chat with it: tierbar chat --tier {tier}"));
                return Ok(());
            }
            outcome => return outcome,
        }
    }
}

/// Waits until the tier that was named for the download has the model, so that the next command can use it.
pub(super) async fn wait_for_download(client: &Client, done: &DownloadStatus, tier: &str) {
    let begun = Instant::now();
    while begun.elapsed() < ASSIGNED_WITHIN {
        let Ok(list) = list::fetch_models(client).await else {
            return;
        };
        let mut own = list.models.iter().filter(|model| is_of(model, done));
        if own.any(|model| model.tiers.iter().any(|of| of.as_str() == tier)) {
            output::error_line(&format!("{tier} uses it."));
            return;
        }
        tokio::time::sleep(LOOK).await;
    }
    output::error_line(&format!(
        "{tier} does not use it yet; `tierbar status` says why"
    ));
}

/// Returns whether the download has brought this model, or a part of it.
fn is_of(model: &LibraryModel, done: &DownloadStatus) -> bool {
    model.reference.as_ref() == Some(&done.reference)
        || Path::new(&model.path).ends_with(&done.file)
}

/// Returns the first tier without a model of the user's choice, or the one for models of this kind.
fn proposed_tier(model: &LibraryModel, tiers: &[TierStatus]) -> Option<String> {
    if let Some(tier) = use_in::tier_of_kind(use_in::kind(model)) {
        return Some(tier.to_owned());
    }
    if chat_tiers(tiers).next().is_none() {
        return Some("fast".to_owned());
    }
    let mut free = chat_tiers(tiers).filter(|tier| tier.model.is_none() || tier.is_starter);
    free.next().map(|tier| tier.id.to_string())
}

fn chat_tiers(tiers: &[TierStatus]) -> impl Iterator<Item = &TierStatus> {
    tiers.iter().filter(|tier| {
        let is_for_chats = ![TierId::EMBEDDER, TierId::RERANKER].contains(&tier.id.as_str());
        is_for_chats && tier.engine == EngineKind::Embedded
    })
}

fn question(model: &LibraryModel, tiers: &[TierStatus], default: Option<&str>) -> String {
    let own = chat_tiers(tiers).map(|tier| tier.id.to_string());
    let names: Vec<_> = match use_in::tier_of_kind(use_in::kind(model)) {
        Some(tier) => vec![tier.to_owned()],
        None => own.collect(),
    };
    let names = match names.as_slice() {
        [] => "fast, primary, heavy".to_owned(),
        names => names.join(", "),
    };
    let or_none = default.map_or("none".to_owned(), |tier| format!("{tier}; n for none"));
    format!("Which tier should use it: {names}? [{or_none}] ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::tier_status;
    use serde_json::{Value, json};

    fn tier(id: &str, model: Option<&str>) -> TierStatus {
        let is_starter = model == Some("starter");
        tier_status(&json!({"id": id, "model": model, "is_starter": is_starter}))
    }

    fn model(account: &Value) -> LibraryModel {
        serde_json::from_value(json!({
            "id": "m", "path": "/models/m.gguf", "size_bytes": 1, "keeper": "tierbar", "account": account, "error": null,
            "reference": "a/b:Q4", "tiers": [], "input_modalities": [], "profiles": [], "sampling": {},
        }))
        .unwrap()
    }

    #[test]
    fn the_first_tier_without_a_chosen_model_is_proposed() {
        let model = model(&Value::Null);
        let tiers = |fast, primary| [tier("fast", fast), tier("primary", primary)];
        for (tiers, name) in [
            (tiers(None, None), Some("fast")),
            (tiers(Some("starter"), None), Some("fast")),
            (tiers(Some("mine"), None), Some("primary")),
            (tiers(Some("mine"), Some("other")), None),
        ] {
            assert_eq!(proposed_tier(&model, &tiers).as_deref(), name);
        }
        assert_eq!(proposed_tier(&model, &[]).as_deref(), Some("fast"));
        assert_eq!(
            question(&model, &tiers(None, None), Some("fast")),
            "Which tier should use it: fast, primary? [fast; n for none] "
        );
    }

    #[test]
    fn a_download_is_found_by_its_reference_or_its_file() {
        let download = |reference: &str, file: &str| -> DownloadStatus {
            serde_json::from_value(json!({
                "id": "1", "reference": reference, "file": file, "state": "done", "priority": "normal", "received_bytes": 1,
                "total_bytes": 1, "bytes_per_second": 0, "eta_seconds": null, "reason": null, "warnings": [],
            }))
            .unwrap()
        };
        let model = model(&Value::Null);
        assert!(is_of(&model, &download("a/b:Q4", "n.gguf")));
        assert!(is_of(&model, &download("https://a/m.gguf", "m.gguf")));
        assert!(!is_of(&model, &download("a/c:Q4", "n.gguf")));
    }
}

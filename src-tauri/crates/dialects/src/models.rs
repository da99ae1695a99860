//! `GET /v1/models`, all or one: in OpenAI's form, or in Anthropic's for its clients.

use crate::{
    anthropic::{self, models::Page},
    ollama::tier_times,
    openai::schema::{Model, Models},
};
use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
    http::HeaderMap,
};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock},
};
use tierbar_core::{
    Modality, ModelId, ModelKind, TierId,
    config::ChainConfig,
    status::{EngineKind, TierStatus},
};
use tierbar_http::{Answer, mount::Routes, path::Id, routes};
use tierbar_inference::{Inference, models::models_by_name, route};

pub fn routes() -> Routes<Arc<Inference>> {
    Routes::default().routes(routes!(list)).routes(routes!(one))
}

/// Lists what a request can name: `auto`, each tier with a model, each chain, and each model of a tier. With the header
/// `anthropic-version`, in Anthropic's form.
#[utoipa::path(
    get,
    path = "/v1/models",
    operation_id = "listModels",
    reach(Inference, Reads),
    responses((status = 200, description = "The list", body = Models)),
)]
async fn list(
    State(inference): State<Arc<Inference>>,
    headers: HeaderMap,
    page: Result<Query<Page>, QueryRejection>,
) -> Json<Value> {
    let data = entries_of(&inference).await;
    if headers.contains_key(anthropic::VERSION) {
        let Query(page) = page.unwrap_or_default();
        return Json(anthropic::models::list(&data, &page));
    }
    Json(json!({"object": "list", "data": data}))
}

/// Returns one entry of the list. Slashes in the id need no escaping.
#[utoipa::path(
    get,
    path = "/v1/models/{*id}",
    operation_id = "getModel",
    reach(Inference, Reads),
    params(("id" = String, Path, description = "A tier, a chain, a model's id, or `auto`")),
    responses((status = 200, description = "The entry", body = Model)),
)]
async fn one(
    State(inference): State<Arc<Inference>>,
    headers: HeaderMap,
    Id(id): Id,
) -> Answer<Value> {
    let tiers = inference.tiers.snapshot();
    let mut entries = entries_of(&inference).await.into_iter();
    let name = route::without_latest_tag(&id, &tiers);
    let found = entries.find(|entry| entry["id"] == *name);
    let found = found.ok_or_else(|| route::unknown_name_error(&id, &tiers))?;
    Ok(Json(match headers.contains_key(anthropic::VERSION) {
        true => anthropic::models::one(&found),
        false => found,
    }))
}

/// When this server first listed something, in seconds since 1970: the moment of what has no file.
static FIRST_LIST: LazyLock<i64> = LazyLock::new(|| Timestamp::now().as_second());

async fn entries_of(inference: &Inference) -> Vec<Value> {
    let tiers = inference.tiers.snapshot();
    let config = inference.services.config();
    let changed = tier_times(inference, &tiers).await;
    entries(&tiers, &config.chains, &changed)
}

/// What answers: `auto`, each tier with a model, each chain, and each model of a tier. `changed`: when their files were, in seconds since
/// 1970.
fn entries(
    tiers: &[TierStatus],
    chains: &BTreeMap<TierId, ChainConfig>,
    changed: &BTreeMap<TierId, i64>,
) -> Vec<Value> {
    let entry = |id: &str, may: &dyn Fn(&TierStatus) -> bool, mut about: Value| {
        let may: Vec<_> = tiers.iter().filter(|tier| may(tier)).collect();
        let modalities = may.iter().flat_map(|tier| tier.input_modalities.iter());
        let modalities: BTreeSet<Modality> = modalities.copied().collect();
        about["input_modalities"] = json!(modalities);
        let created = may.iter().filter_map(|tier| changed.get(&tier.id)).max();
        let mut entry = json!({
            "id": id,
            "object": "model",
            "created": created.unwrap_or(&FIRST_LIST),
            "owned_by": "tierbar",
        });
        if let Some(tokens) = context(&may) {
            // By the names that OpenRouter and vLLM have for it.
            entry["context_length"] = tokens.into();
            entry["max_model_len"] = tokens.into();
        }
        entry["tierbar"] = about;
        entry
    };
    let mut entries = vec![entry(
        TierId::AUTO,
        &|tier| tier.model.is_some(),
        json!({"kind": "router"}),
    )];
    let with_model = tiers.iter().filter(|tier| tier.model.is_some());
    entries.extend(with_model.map(|status| {
        let about = json!({"kind": "tier", "state": status.state, "model": status.model});
        entry(status.id.as_str(), &|tier| tier.id == status.id, about)
    }));
    entries.extend(chains.iter().map(|(name, chain)| {
        let about = json!({"kind": "chain", "steps": chain.steps});
        let is_step = |tier: &TierStatus| chain.tiers().any(|step| *step == tier.id);
        entry(name.as_str(), &is_step, about)
    }));
    entries.extend(models_by_name(tiers, chains).iter().map(|model: &ModelId| {
        let has_it = |tier: &TierStatus| tier.model.as_ref() == Some(model);
        let its_tiers = tiers.iter().filter(|tier| has_it(tier));
        let its_tiers: Vec<_> = its_tiers.map(|tier| &tier.id).collect();
        let about = json!({"kind": "model", "tiers": its_tiers});
        entry(model.as_str(), &has_it, about)
    }));
    entries
}

/// The tokens that fit into the context of each of these tiers, as far as that is known: of another program's it is not. Of several kinds
/// of models, those that chat count.
fn context(tiers: &[&TierStatus]) -> Option<u32> {
    let known = |kind: Option<ModelKind>| {
        let ours = tiers.iter().filter(|tier| {
            tier.engine == EngineKind::Embedded && kind.is_none_or(|kind| tier.kind == kind)
        });
        let contexts = ours.map(|tier| tier.context_tokens);
        contexts.filter(|tokens| *tokens > 0).min()
    };
    known(Some(ModelKind::Chat)).or_else(|| known(None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::tier;
    use std::collections::BTreeMap;
    use tierbar_core::{Modality, TierId, TierState};

    #[test]
    fn a_model_is_listed_with_the_tiers_that_have_it() {
        let tiers = [
            tier("fast", Some("small"), TierState::Stopped),
            tier("primary", Some("small"), TierState::Stopped),
            tier("cloud", Some("work"), TierState::Ready),
            tier("empty", None, TierState::Stopped),
        ];
        let mut tiers = tiers;
        tiers[1].input_modalities = vec![Modality::Text, Modality::Image];
        let chain = serde_json::from_value(json!({"steps": ["cloud", "fast", "queue"]})).unwrap();
        let chains = BTreeMap::from([(TierId::new("work").unwrap(), chain)]);
        tiers[0].context_tokens = 8192;
        tiers[2].engine = EngineKind::Endpoint;
        let changed = BTreeMap::from([(TierId::new("fast").unwrap(), 1_700_000_000)]);
        let entries = entries(&tiers, &chains, &changed);
        assert!(entries.iter().all(|entry| entry["id"] != "empty"));
        let named: Vec<_> = entries
            .iter()
            .filter(|entry| entry["id"] == "work")
            .map(|entry| entry["tierbar"].clone())
            .collect();
        assert_eq!(
            named,
            [json!({"kind": "chain", "steps": ["cloud", "fast", "queue"], "input_modalities": []})]
        );
        let facts = |id: &str| {
            let entry = entries.iter().find(|entry| entry["id"] == id).unwrap();
            assert_eq!(entry["context_length"], entry["max_model_len"], "{id}");
            (
                entry["context_length"].as_u64(),
                entry["created"] == 1_700_000_000,
            )
        };
        assert_eq!(facts("fast"), (Some(8192), true));
        assert_eq!(facts("small"), (Some(4096), true));
        assert_eq!(facts("auto"), (Some(4096), true));
        assert_eq!(facts("primary"), (Some(4096), false));
        assert_eq!(facts("cloud"), (None, false));
        assert!(
            entries
                .iter()
                .all(|entry| entry["created"].as_i64() > Some(1_600_000_000))
        );
        let takes = |id: &str| {
            let mut found = entries.iter().filter(|entry| entry["id"] == id);
            found.next().unwrap()["tierbar"]["input_modalities"].clone()
        };
        assert_eq!(takes("auto"), json!(["text", "image"]));
        assert_eq!(takes("primary"), json!(["text", "image"]));
        assert_eq!(takes("small"), json!(["text", "image"]));
        let models: Vec<_> = entries
            .into_iter()
            .filter(|entry| entry["tierbar"]["kind"] == "model")
            .map(|entry| (entry["id"].clone(), entry["tierbar"]["tiers"].clone()))
            .collect();
        assert_eq!(models, [(json!("small"), json!(["fast", "primary"]))]);
    }
}

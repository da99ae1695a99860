//! `GET /api/tags`, what can be asked for, and `GET /api/ps`, what is loaded.

use super::{
    details::{self, Library},
    schema::{OllamaLoaded, OllamaModels},
};
use axum::{Json, extract::State};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::sync::Arc;
use tierbar_core::{
    TierId, TierState,
    fit::LibraryModel,
    status::{EngineKind, TierStatus},
};
use tierbar_inference::{Inference, models::models_by_name};

/// As far ahead as Ollama itself says, for a tier that stays or answers.
const FOREVER: &str = "2318-01-01T00:00:00Z";

/// Lists what a request can name: `auto`, each tier with a model, each chain, and each model of a tier.
#[utoipa::path(
    get,
    path = "/api/tags",
    operation_id = "ollamaTags",
    reach(Inference, Reads),
    responses((status = 200, description = "The list", body = OllamaModels)),
)]
pub(super) async fn tags(State(inference): State<Arc<Inference>>) -> Json<Value> {
    let tiers = inference.tiers.snapshot();
    let library = Library::read(&inference).await;
    let with_model = tiers.iter().filter(|tier| tier.model.is_some());
    let with_model = with_model.map(|tier| (tier.id.as_str(), library.of_tier(tier)));
    let config = inference.services.config();
    let chains = &config.chains;
    let models = models_by_name(&tiers, chains);
    let chains = chains.keys().map(|name| (name.as_str(), None));
    let models = models
        .iter()
        .map(|id| (id.as_str(), library.of_model(id, &tiers)));
    let listed: Vec<_> = [(TierId::AUTO, None)]
        .into_iter()
        .chain(with_model)
        .chain(chains)
        .chain(models)
        .collect();
    let files: Vec<_> = listed.iter().map(|(_, model)| *model).collect();
    let changed = details::modification_times(&files).await;
    let listed = listed.into_iter().zip(changed);
    let rendered: Vec<_> = listed
        .map(|((name, model), changed)| {
            json!({
                "name": name,
                "model": name,
                "modified_at": changed.to_string(),
                "size": model.map_or(0, |model| model.size_bytes),
                "digest": details::digest(name, model),
                "details": details::details(model),
                "capabilities": details::capabilities(model),
            })
        })
        .collect();
    Json(json!({"models": rendered}))
}

/// Lists the loaded tiers of this machine.
#[utoipa::path(
    get,
    path = "/api/ps",
    operation_id = "ollamaPs",
    reach(Inference, Reads),
    responses((status = 200, description = "The list", body = OllamaLoaded)),
)]
pub(super) async fn ps(State(inference): State<Arc<Inference>>) -> Json<Value> {
    let status = inference.services.status();
    let library = Library::read(&inference).await;
    let is_loaded = |tier: &&TierStatus| {
        let loaded = matches!(tier.state, TierState::Ready | TierState::Busy);
        loaded && tier.engine != EngineKind::Endpoint
    };
    let loaded = status.tiers.iter().filter(is_loaded);
    let rendered: Vec<_> = loaded
        .map(|tier| running(tier, library.of_tier(tier)))
        .collect();
    Json(json!({"models": rendered}))
}

/// Ollama's clients want a moment: one beyond all is "forever" to them, which one in the past is not.
fn expires_at(tier: &TierStatus) -> String {
    let at = tier.unloads_at_ms.and_then(|ms| i64::try_from(ms).ok());
    let at = at.and_then(|ms| Timestamp::from_millisecond(ms).ok());
    at.map_or_else(|| FOREVER.to_owned(), |at| at.to_string())
}

fn running(tier: &TierStatus, model: Option<&LibraryModel>) -> Value {
    let name = tier.id.as_str();
    let planned = tier.plan.as_ref().map(|plan| plan.total_bytes());
    let size = tier.footprint_bytes.or(planned).unwrap_or_default();
    let fit = model.and_then(|model| model.fit.as_ref());
    let on_gpu = fit.and_then(|fit| fit.gpu).map_or(0, |gpu| gpu.bytes);
    json!({
        "name": name,
        "model": name,
        "size": size,
        "size_vram": on_gpu.min(size),
        "digest": details::digest(name, model),
        "details": details::details(model),
        "expires_at": expires_at(tier),
        "context_length": tier.context_tokens,
        "tierbar": {"model": tier.model, "state": tier.state},
    })
}

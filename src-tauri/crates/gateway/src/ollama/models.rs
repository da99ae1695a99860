//! `GET /api/tags`, what can be asked for, and `GET /api/ps`, what is loaded.

use super::details::{self, Library};
use crate::Gateway;
use axum::{Json, extract::State};
use serde_json::{Value, json};
use std::{collections::BTreeSet, sync::Arc};
use tierbar_core::{
    TierId, TierState,
    fit::LibraryModel,
    status::{EngineKind, TierStatus},
};

/// `auto`, each tier that has a model, each chain, and each model that a tier has or that is here.
pub(super) async fn tags(State(gateway): State<Arc<Gateway>>) -> Json<Value> {
    let tiers = gateway.tiers.snapshot();
    let library = Library::read(&gateway).await;
    let seats = tiers.iter().filter(|tier| tier.model.is_some());
    let seats = seats.map(|tier| (tier.id.as_str(), library.of_tier(tier)));
    let config = gateway.services.config();
    let chains = &config.chains;
    let names = tiers.iter().map(|tier| &tier.id).chain(chains.keys());
    let seated = tiers.iter().filter_map(|tier| tier.model.as_ref());
    let models: BTreeSet<_> = seated
        .chain(library.loadable())
        .filter(|model| !names.clone().any(|name| name.as_str() == model.as_str()))
        .collect();
    let chains = chains.keys().map(|name| (name.as_str(), None));
    let models = models
        .into_iter()
        .map(|id| (id.as_str(), library.of_model(id, &tiers)));
    let listed: Vec<_> = [(TierId::AUTO, None)]
        .into_iter()
        .chain(seats)
        .chain(chains)
        .chain(models)
        .collect();
    let files: Vec<_> = listed.iter().map(|(_, model)| *model).collect();
    let changed = details::changed(&files).await;
    let told = listed.into_iter().zip(changed);
    let told: Vec<_> = told
        .map(|((name, model), changed)| {
            json!({
                "name": name,
                "model": name,
                "modified_at": changed,
                "size": model.map_or(0, |model| model.size_bytes),
                "digest": details::digest(name, model),
                "details": details::details(model),
            })
        })
        .collect();
    Json(json!({"models": told}))
}

/// Each tier that holds memory here, with what was measured of it. `expires_at` is left out: when a tier goes, the supervisor
/// decides when it is time.
pub(super) async fn ps(State(gateway): State<Arc<Gateway>>) -> Json<Value> {
    let status = gateway.services.status();
    let library = Library::read(&gateway).await;
    let is_loaded = |tier: &&TierStatus| {
        let loaded = matches!(tier.state, TierState::Ready | TierState::Busy);
        loaded && tier.engine != EngineKind::Endpoint
    };
    let loaded = status.tiers.iter().filter(is_loaded);
    let told: Vec<_> = loaded
        .map(|tier| running(tier, library.of_tier(tier)))
        .collect();
    Json(json!({"models": told}))
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
        "context_length": tier.context_tokens,
        "tierbar": {"model": tier.model, "state": tier.state},
    })
}

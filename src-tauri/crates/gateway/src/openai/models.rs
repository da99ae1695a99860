//! `GET /v1/models`.

use crate::Gateway;
use axum::{Json, extract::State};
use serde_json::{Value, json};
use std::{collections::BTreeSet, sync::Arc};
use tierbar_core::TierId;

/// `auto`, each tier, and each model that a tier names.
pub(crate) async fn list(State(gateway): State<Arc<Gateway>>) -> Json<Value> {
    let tiers = gateway.tiers.snapshot();
    let mut data = vec![entry(TierId::AUTO, json!({"kind": "router"}))];
    data.extend(tiers.iter().map(|tier| {
        entry(
            tier.id.as_str(),
            json!({"kind": "tier", "state": tier.state, "model": tier.model}),
        )
    }));
    let models: BTreeSet<_> = tiers
        .iter()
        .filter_map(|tier| tier.model.as_ref())
        .collect();
    data.extend(
        models
            .into_iter()
            .map(|model| entry(model.as_str(), json!({"kind": "model"}))),
    );
    Json(json!({"object": "list", "data": data}))
}

fn entry(id: &str, tierbar: Value) -> Value {
    // OpenAI's clients require `created`; a tier has no such moment.
    json!({"id": id, "object": "model", "created": 0, "owned_by": "tierbar", "tierbar": tierbar})
}

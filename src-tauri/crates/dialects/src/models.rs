//! `GET /v1/models`, all or one: in OpenAI's form, or in Anthropic's for its clients.

use crate::{
    anthropic::{self, models::Page},
    openai::schema::{Model, Models},
};
use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
    http::HeaderMap,
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tierbar_core::{Modality, ModelId, TierId, config::ChainConfig, status::TierStatus};
use tierbar_http::{error::Failure, mount::Routes, path::Id, routes, schema::Errors};
use tierbar_inference::{Inference, models::models_by_name, route};

pub fn routes() -> Routes<Arc<Inference>> {
    Routes::default().routes(routes!(list)).routes(routes!(one))
}

/// Lists what a request can name: `auto`, each tier with a model, each chain, and each model of a tier. With the header
/// `anthropic-version`, in Anthropic's form.
#[utoipa::path(
    get,
    path = "/v1/models",
    tag = "openai",
    operation_id = "listModels",
    reach(Inference, Reads),
    responses((status = 200, description = "The list", body = Models), Errors),
)]
async fn list(
    State(inference): State<Arc<Inference>>,
    headers: HeaderMap,
    page: Result<Query<Page>, QueryRejection>,
) -> Json<Value> {
    let config = inference.services.config();
    let data = entries(&inference.tiers.snapshot(), &config.chains);
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
    tag = "openai",
    operation_id = "getModel",
    reach(Inference, Reads),
    params(("id" = String, Path, description = "A tier, a chain, a model's id, or `auto`")),
    responses((status = 200, description = "The entry", body = Model), Errors),
)]
async fn one(
    State(inference): State<Arc<Inference>>,
    headers: HeaderMap,
    Id(id): Id,
) -> Result<Json<Value>, Failure> {
    let tiers = inference.tiers.snapshot();
    let config = inference.services.config();
    let mut entries = entries(&tiers, &config.chains).into_iter();
    let name = route::without_latest_tag(&id, &tiers);
    let found = entries.find(|entry| entry["id"] == *name);
    let found = found.ok_or_else(|| route::unknown_name_error(&id, &tiers))?;
    Ok(Json(match headers.contains_key(anthropic::VERSION) {
        true => anthropic::models::one(&found),
        false => found,
    }))
}

/// What answers: `auto`, each tier with a model, each chain, and each model of a tier.
fn entries(tiers: &[TierStatus], chains: &BTreeMap<TierId, ChainConfig>) -> Vec<Value> {
    let tier = |tier: &TierStatus| {
        json!({
            "kind": "tier",
            "state": tier.state,
            "model": tier.model,
            "input_modalities": tier.input_modalities,
        })
    };
    // What one of the tiers takes that may answer.
    let any_of = |may: &dyn Fn(&TierStatus) -> bool| -> BTreeSet<Modality> {
        let tiers = tiers.iter().filter(|tier| may(tier));
        tiers
            .flat_map(|tier| tier.input_modalities.iter().copied())
            .collect()
    };
    let tiers_of = |model: &ModelId| {
        let its_tiers = tiers
            .iter()
            .filter(|tier| tier.model.as_ref() == Some(model));
        let modalities = any_of(&|tier| tier.model.as_ref() == Some(model));
        json!({
            "kind": "model",
            "tiers": its_tiers.map(|tier| &tier.id).collect::<Vec<_>>(),
            "input_modalities": modalities,
        })
    };
    let models = models_by_name(tiers, chains);
    let all = any_of(&|_| true);
    let router = json!({"kind": "router", "input_modalities": all});
    let mut entries = vec![entry(TierId::AUTO, router)];
    entries.extend(
        tiers
            .iter()
            .filter(|tier| tier.model.is_some())
            .map(|status| entry(status.id.as_str(), tier(status))),
    );
    entries.extend(chains.iter().map(|(name, chain)| {
        let modalities = any_of(&|tier| chain.tiers().any(|step| *step == tier.id));
        let rendered =
            json!({"kind": "chain", "steps": chain.steps, "input_modalities": modalities});
        entry(name.as_str(), rendered)
    }));
    entries.extend(
        models
            .iter()
            .map(|model| entry(model.as_str(), tiers_of(model))),
    );
    entries
}

fn entry(id: &str, tierbar: Value) -> Value {
    // OpenAI's clients require `created`; a tier has no such moment.
    json!({"id": id, "object": "model", "created": 0, "owned_by": "tierbar", "tierbar": tierbar})
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
        let entries = entries(&tiers, &chains);
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

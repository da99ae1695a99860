//! `GET /v1/models`, all or one.

use super::route;
use crate::{Gateway, error::Failure, path::Id};
use axum::{Json, extract::State};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tierbar_core::{Code, Error, ModelId, TierId, config::ChainConfig, status::TierStatus};

pub(crate) async fn list(State(gateway): State<Arc<Gateway>>) -> Json<Value> {
    let installed = installed(&gateway).await;
    let config = gateway.services.config();
    let data = entries(&gateway.tiers.snapshot(), &config.chains, installed);
    Json(json!({"object": "list", "data": data}))
}

pub(crate) async fn one(
    State(gateway): State<Arc<Gateway>>,
    Id(id): Id,
) -> Result<Json<Value>, Failure> {
    let tiers = gateway.tiers.snapshot();
    let installed = installed(&gateway).await;
    let config = gateway.services.config();
    let mut entries = entries(&tiers, &config.chains, installed).into_iter();
    let found = entries.find(|entry| entry["id"] == *id);
    Ok(Json(found.ok_or_else(|| route::unknown(&id, &tiers))?))
}

/// Why a name means no tier, where more can be said: it may be that of a model which is here and which no tier has.
pub(crate) async fn explained(gateway: &Gateway, wanted: Option<&str>, error: Error) -> Error {
    let Some(name) = wanted.filter(|_| error.code == Code::ModelUnknown) else {
        return error;
    };
    unseated(name, &installed(gateway).await, error)
}

fn unseated(name: &str, installed: &BTreeSet<ModelId>, error: Error) -> Error {
    let id = ModelId(name.strip_suffix(".gguf").unwrap_or(name).to_owned());
    if !installed.contains(&id) {
        return error;
    }
    let told = Error::new(error.code, format!("{id} is here, and no tier has it"));
    let told =
        told.hint("choose it for a tier in Settings, or set it as a tier's model in config.toml");
    Error {
        details: error.details,
        ..told
    }
}

/// The models that are here and can be loaded; none if the folder cannot be read: what can be asked for is told all the same.
async fn installed(gateway: &Gateway) -> BTreeSet<ModelId> {
    let listed = gateway.models.list().await;
    let models = listed.map(|listed| listed.models).unwrap_or_default();
    let loadable = models.into_iter().filter(|model| model.error.is_none());
    loadable.map(|model| model.id).collect()
}

/// `auto`, each tier, each chain, and each model that a tier names or that is here.
fn entries(
    tiers: &[TierStatus],
    chains: &BTreeMap<TierId, ChainConfig>,
    installed: BTreeSet<ModelId>,
) -> Vec<Value> {
    let tier =
        |tier: &TierStatus| json!({"kind": "tier", "state": tier.state, "model": tier.model});
    let seats = |model: &ModelId| {
        let seats = tiers
            .iter()
            .filter(|tier| tier.model.as_ref() == Some(model));
        json!({"kind": "model", "tiers": seats.map(|tier| &tier.id).collect::<Vec<_>>()})
    };
    let models = askable(tiers, chains, installed);
    let mut entries = vec![entry(TierId::AUTO, json!({"kind": "router"}))];
    entries.extend(
        tiers
            .iter()
            .map(|status| entry(status.id.as_str(), tier(status))),
    );
    entries.extend(chains.iter().map(|(name, chain)| {
        let told = json!({"kind": "chain", "steps": chain.steps});
        entry(name.as_str(), told)
    }));
    entries.extend(
        models
            .iter()
            .map(|model| entry(model.as_str(), seats(model))),
    );
    entries
}

/// The models that can be asked for by their own names, of those that are here and those that tiers have: a name is a tier's or
/// a chain's before it is a model's.
pub(crate) fn askable(
    tiers: &[TierStatus],
    chains: &BTreeMap<TierId, ChainConfig>,
    installed: BTreeSet<ModelId>,
) -> BTreeSet<ModelId> {
    let mut models = installed;
    models.extend(tiers.iter().filter_map(|tier| tier.model.clone()));
    let names = tiers.iter().map(|tier| &tier.id).chain(chains.keys());
    models.retain(|model| !names.clone().any(|name| name.as_str() == model.as_str()));
    models
}

fn entry(id: &str, tierbar: Value) -> Value {
    // OpenAI's clients require `created`; a tier has no such moment.
    json!({"id": id, "object": "model", "created": 0, "owned_by": "tierbar", "tierbar": tierbar})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, json, tier};
    use tierbar_core::TierState;

    #[tokio::test]
    async fn all_are_listed_and_each_can_be_asked_for() {
        let bench = Bench::new("127.0.0.1:11435").await;
        let list = json(bench.get("/v1/models").await).await;
        let ids: Vec<_> = list["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| &entry["id"])
            .collect();
        assert_eq!(ids, ["auto", "fast", "small"]);
        let one = json(bench.get("/v1/models/fast").await).await;
        assert_eq!(one, list["data"][1]);
        assert_eq!(
            one["tierbar"],
            json!({"kind": "tier", "state": "ready", "model": "small"})
        );
        let unknown = bench.get("/v1/models/gpt-5").await;
        assert_eq!(unknown.status(), 404);
        assert_eq!(json(unknown).await["error"]["code"], "model_unknown");
    }

    #[tokio::test]
    async fn a_name_with_a_slash_can_be_asked_for_written_out_or_not() {
        let bench = Bench::new("127.0.0.1:11435").await;
        let far = tier("far", Some("org/model x:free"), TierState::Ready);
        bench.tiers(|tiers| tiers.push(far));
        for path in ["org/model%20x:free", "org%2Fmodel%20x%3Afree"] {
            let one = bench.get(&format!("/v1/models/{path}")).await;
            assert_eq!(one.status(), 200, "{path}");
            assert_eq!(json(one).await["id"], "org/model x:free");
        }
        let unknown = bench.get("/v1/models/org/other").await;
        assert_eq!(unknown.status(), 404);
        assert_eq!(json(unknown).await["error"]["code"], "model_unknown");
    }

    #[test]
    fn what_is_here_is_listed_with_the_tiers_that_have_it() {
        let tiers = [
            tier("fast", Some("small"), TierState::Stopped),
            tier("primary", Some("small"), TierState::Stopped),
            tier("cloud", Some("large"), TierState::Ready),
        ];
        let here = ["small", "new", "cloud", "work"].map(|id| ModelId(id.to_owned()));
        let chain = serde_json::from_value(json!({"steps": ["cloud", "fast", "queue"]})).unwrap();
        let chains = BTreeMap::from([(TierId::new("work").unwrap(), chain)]);
        let entries = entries(&tiers, &chains, BTreeSet::from(here));
        let named: Vec<_> = entries
            .iter()
            .filter(|entry| entry["id"] == "work")
            .map(|entry| entry["tierbar"].clone())
            .collect();
        assert_eq!(
            named,
            [json!({"kind": "chain", "steps": ["cloud", "fast", "queue"]})]
        );
        let models: Vec<_> = entries
            .into_iter()
            .filter(|entry| entry["tierbar"]["kind"] == "model")
            .map(|entry| (entry["id"].clone(), entry["tierbar"]["tiers"].clone()))
            .collect();
        assert_eq!(
            models,
            [
                (json!("large"), json!(["cloud"])),
                (json!("new"), json!([])),
                (json!("small"), json!(["fast", "primary"])),
            ]
        );
    }

    #[test]
    fn a_model_that_is_here_and_in_no_tier_is_refused_with_what_to_do() {
        let tiers = [tier("fast", Some("small"), TierState::Stopped)];
        let here = BTreeSet::from([ModelId("new".to_owned())]);
        let refused = |name: &str| unseated(name, &here, route::unknown(name, &tiers));
        for name in ["new", "new.gguf"] {
            let error = refused(name);
            assert_eq!(error.message, "new is here, and no tier has it");
            assert_eq!(error.code, Code::ModelUnknown);
            assert_eq!(error.details["available"], json!(["auto", "fast", "small"]));
        }
        assert_eq!(refused("gpt-5"), route::unknown("gpt-5", &tiers));
    }
}

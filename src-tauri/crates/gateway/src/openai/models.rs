//! `GET /v1/models`, all or one.

use super::route;
use crate::{Gateway, error::Failure, path::Id};
use axum::{Json, extract::State};
use serde_json::{Value, json};
use std::{collections::BTreeSet, sync::Arc};
use tierbar_core::{TierId, status::TierStatus};

pub(crate) async fn list(State(gateway): State<Arc<Gateway>>) -> Json<Value> {
    Json(json!({"object": "list", "data": entries(&gateway.tiers.snapshot())}))
}

pub(crate) async fn one(
    State(gateway): State<Arc<Gateway>>,
    Id(id): Id,
) -> Result<Json<Value>, Failure> {
    let tiers = gateway.tiers.snapshot();
    let found = entries(&tiers).into_iter().find(|entry| entry["id"] == *id);
    Ok(Json(found.ok_or_else(|| route::unknown(&id, &tiers))?))
}

/// `auto`, each tier, and each model that a tier names.
fn entries(tiers: &[TierStatus]) -> Vec<Value> {
    let tier =
        |tier: &TierStatus| json!({"kind": "tier", "state": tier.state, "model": tier.model});
    let models: BTreeSet<_> = tiers
        .iter()
        .filter_map(|tier| tier.model.as_ref())
        .collect();
    let models = models.into_iter();
    let mut entries = vec![entry(TierId::AUTO, json!({"kind": "router"}))];
    entries.extend(
        tiers
            .iter()
            .map(|status| entry(status.id.as_str(), tier(status))),
    );
    entries.extend(models.map(|model| entry(model.as_str(), json!({"kind": "model"}))));
    entries
}

fn entry(id: &str, tierbar: Value) -> Value {
    // OpenAI's clients require `created`; a tier has no such moment.
    json!({"id": id, "object": "model", "created": 0, "owned_by": "tierbar", "tierbar": tierbar})
}

#[cfg(test)]
mod tests {
    use crate::testing::{Bench, json};
    use serde_json::json;

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
}

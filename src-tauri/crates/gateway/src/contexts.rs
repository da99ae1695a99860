//! Saved contexts: listed and deleted here, where no model need be loaded; saved and loaded by the worker of their model.

use crate::{
    Gateway,
    blocking::blocking,
    body,
    error::Failure,
    openai::{relay, route},
};
use axum::{
    Json, Router,
    body::Body,
    extract::State,
    response::Response,
    routing::{get, post},
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use tierbar_contexts::{Contexts, Saved};
use tierbar_core::{Code, Error, ModelId, status::TierStatus};

const SAVE: &str = "/v1/context/save";
const LOAD: &str = "/v1/context/load";

pub(crate) fn routes() -> Router<Arc<Gateway>> {
    let save = |State(gateway): State<Arc<Gateway>>, body: Body| relay::relay(gateway, SAVE, body);
    Router::new()
        .route("/v1/context", get(list))
        .route(SAVE, post(save))
        .route(LOAD, post(load))
        .route("/v1/context/delete", post(delete))
}

#[derive(Deserialize)]
struct Named {
    name: String,
    #[serde(default)]
    model: Option<String>,
}

async fn list(State(gateway): State<Arc<Gateway>>) -> Result<Json<Value>, Failure> {
    let all = on_disk(&gateway, |contexts| contexts.list()).await?;
    let data: Vec<_> = all.iter().map(told).collect();
    Ok(Json(json!({"object": "list", "data": data})))
}

async fn delete(State(gateway): State<Arc<Gateway>>, body: Body) -> Result<Json<Value>, Failure> {
    let Named { name, .. } = body::parse(&body::read(body, body::ADMIN_LIMIT).await?)?;
    let removed = name.clone();
    on_disk(&gateway, move |contexts| contexts.remove(&removed)).await?;
    Ok(Json(json!({"name": name, "deleted": true})))
}

/// Goes to a tier of the model that the context was saved with, unless the request names another.
async fn load(State(gateway): State<Arc<Gateway>>, body: Body) -> Result<Response, Failure> {
    let body = body::read(body, body::ADMIN_LIMIT).await?;
    let Named { name, model } = body::parse(&body)?;
    let asked = name.clone();
    let saved = on_disk(&gateway, move |contexts| contexts.get(&asked)).await?;
    let tiers = gateway.tiers.snapshot();
    let tier = match &model {
        Some(model) => route::resolve(Some(model), &tiers)?,
        None => route::resolve(Some(seat(&saved, &tiers)?.as_str()), &tiers)?,
    };
    relay::relay_to(gateway, tier, LOAD, body, false).await
}

/// # Errors
/// `ContextMismatch` if no tier has the context's model.
fn seat<'a>(saved: &'a Saved, tiers: &[TierStatus]) -> Result<&'a ModelId, Error> {
    let has = |tier: &&TierStatus| tier.model.as_ref() == Some(&saved.model);
    if tiers.iter().any(|tier| has(&tier)) {
        return Ok(&saved.model);
    }
    let (name, model) = (&saved.name, &saved.model);
    let message = format!("the saved context \"{name}\" belongs to {model}, which no tier has now");
    Err(Error::new(Code::ContextMismatch, message).hint("give a tier this model, or save it again"))
}

/// What concerns a client: the key is the worker's.
fn told(saved: &Saved) -> Value {
    json!({
        "name": saved.name,
        "model": saved.model,
        "tokens": saved.tokens,
        "bytes": saved.bytes,
        "created": saved.created,
        "kv_cache": saved.key.kv_cache,
    })
}

async fn on_disk<T: Send + 'static>(
    gateway: &Gateway,
    work: impl FnOnce(&Contexts) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let contexts = gateway.contexts.clone();
    blocking("the saved contexts", move || work(&contexts)).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, json};
    use tierbar_contexts::Key;
    use tierbar_core::config::KvCache;

    fn save(bench: &Bench, name: &str, model: &str) {
        let draft = bench.contexts.draft(name).unwrap();
        std::fs::write(draft.path(), b"state").unwrap();
        let key = Key {
            model: "m".into(),
            template: "t".into(),
            kv_cache: KvCache::Q8_0,
            engine: "e".into(),
        };
        draft.seal(ModelId(model.to_owned()), 7, key, 5).unwrap();
    }

    fn worker() -> Router {
        let echo = |body: String| async move {
            let body: Value = serde_json::from_str(&body).unwrap();
            Json(json!({"asked": body}))
        };
        Router::new()
            .route(SAVE, post(echo))
            .route(LOAD, post(echo))
    }

    #[tokio::test]
    async fn all_are_listed_and_deleted_while_nothing_is_loaded() {
        let bench = Bench::new("127.0.0.1:11435").await;
        let none = json(bench.get("/v1/context").await).await;
        assert_eq!(none["data"], json!([]));
        save(&bench, "talk", "small");
        let one = json(bench.get("/v1/context").await).await;
        let entry = &one["data"][0];
        assert_eq!(
            (&entry["name"], &entry["model"]),
            (&json!("talk"), &json!("small"))
        );
        assert_eq!(
            (&entry["tokens"], &entry["kv_cache"]),
            (&json!(7), &json!("q8_0"))
        );
        let delete = || bench.post("/v1/context/delete", r#"{"name":"talk"}"#);
        assert_eq!(delete().await.status(), 200);
        let gone = delete().await;
        assert_eq!(gone.status(), 404);
        assert_eq!(json(gone).await["error"]["code"], "context_unknown");
    }

    #[tokio::test]
    async fn a_load_goes_to_a_tier_of_its_model_and_is_refused_without_one() {
        let bench = Bench::new("127.0.0.1:11435").await;
        bench.load(worker());
        save(&bench, "mine", "small");
        save(&bench, "other", "large");
        let loaded = bench.post(LOAD, r#"{"name":"mine"}"#).await;
        assert_eq!(loaded.status(), 200);
        assert_eq!(loaded.headers()["x-tierbar-tier"], "fast");
        assert_eq!(json(loaded).await["asked"]["name"], "mine");
        let refused = bench.post(LOAD, r#"{"name":"other"}"#).await;
        assert_eq!(refused.status(), 409);
        let refused = json(refused).await;
        assert_eq!(refused["error"]["code"], "context_mismatch");
        assert!(
            refused["error"]["message"]
                .as_str()
                .unwrap()
                .contains("large")
        );
        let named = bench.post(LOAD, r#"{"name":"other","model":"fast"}"#).await;
        assert_eq!(named.status(), 200);
    }

    #[tokio::test]
    async fn a_save_goes_to_the_tier_that_it_names() {
        let bench = Bench::new("127.0.0.1:11435").await;
        bench.load(worker());
        let body = r#"{"name":"n","model":"fast","prompt":"p"}"#;
        let saved = bench.post(SAVE, body).await;
        assert_eq!(saved.headers()["x-tierbar-model"], "small");
        assert_eq!(json(saved).await["asked"]["prompt"], "p");
        let unknown = bench.post(SAVE, r#"{"name":"n","model":"gpt-5"}"#).await;
        assert_eq!(unknown.status(), 404);
    }
}

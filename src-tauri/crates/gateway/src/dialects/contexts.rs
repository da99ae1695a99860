//! Saved contexts: listed and deleted here, where no model need be loaded; saved and loaded by the worker of their model.

mod schema;

use crate::{
    blocking::blocking,
    http::{body, error::Failure, routes::routes, schema::Errors},
    inference::{
        Inference, caller::Caller, charge::Charge, content::Content, dispatch, hints::Hints, relay,
        route,
    },
    metrics::Trace,
};
use axum::{Json, body::Body, extract::State, response::Response};
use schema::{ContextDeleted, ContextSave, SavedContext};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{sync::Arc, time::Instant};
use tierbar_contexts::{Contexts, Saved};
use tierbar_core::{
    Code, Error, TierId,
    status::{EngineKind, TierStatus},
};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;

const SAVE: &str = "/v1/context/save";
const LOAD: &str = "/v1/context/load";

pub(crate) fn is_path(path: &str) -> bool {
    path == "/v1/context" || path.starts_with("/v1/context/")
}

/// What contexts are saved with.
#[derive(Debug, Clone)]
struct Saves {
    inference: Arc<Inference>,
    contexts: Contexts,
}

pub(crate) fn routes(inference: Arc<Inference>, contexts: Contexts) -> OpenApiRouter {
    OpenApiRouter::default()
        .routes(routes!(list))
        .routes(routes!(save))
        .routes(routes!(load))
        .routes(routes!(delete))
        .with_state(Saves {
            inference,
            contexts,
        })
}

/// A saved context.
#[derive(Deserialize, ToSchema)]
#[schema(as = ContextName)]
struct Named {
    name: String,
    /// To load it: a tier, a model's id, or `auto`, which prefers a tier that the context fits.
    #[serde(default)]
    model: Option<String>,
}

/// Lists all saved contexts, newest first.
#[utoipa::path(
    get,
    path = "/v1/context",
    tag = "contexts",
    operation_id = "listContexts",
    responses((status = 200, description = "The list", body = schema::Contexts), Errors),
)]
async fn list(State(saves): State<Saves>) -> Result<Json<Value>, Failure> {
    let all = on_disk(&saves, |contexts| contexts.list()).await?;
    let data: Vec<_> = all.iter().map(to_json).collect();
    Ok(Json(json!({"object": "list", "data": data})))
}

/// Saves a conversation's KV cache.
#[utoipa::path(
    post,
    path = SAVE,
    tag = "contexts",
    operation_id = "saveContext",
    request_body = ContextSave,
    responses((status = 200, description = "The saved context", body = SavedContext), Errors),
)]
async fn save(State(saves): State<Saves>, hints: Hints, body: Body) -> Result<Response, Failure> {
    dispatch::answer(saves.inference, SAVE, hints, body).await
}

/// Deletes a saved context.
#[utoipa::path(
    post,
    path = "/v1/context/delete",
    tag = "contexts",
    operation_id = "deleteContext",
    request_body = Named,
    responses((status = 200, description = "The context is deleted", body = ContextDeleted), Errors),
)]
async fn delete(State(saves): State<Saves>, body: Body) -> Result<Json<Value>, Failure> {
    let Named { name, .. } = body::parse(&body::read(body, body::ADMIN_LIMIT).await?)?;
    let removed = name.clone();
    on_disk(&saves, move |contexts| contexts.remove(&removed)).await?;
    Ok(Json(json!({"name": name, "deleted": true})))
}

/// Loads a saved context into memory.
#[utoipa::path(
    post,
    path = LOAD,
    tag = "contexts",
    operation_id = "loadContext",
    request_body = Named,
    responses((status = 200, description = "The loaded context", body = SavedContext), Errors),
)]
async fn load(State(saves): State<Saves>, body: Body) -> Result<Response, Failure> {
    let arrived = Instant::now();
    let body = body::read(body, body::ADMIN_LIMIT).await?;
    let (content, _) = Content::read(body)?;
    let Named { name, model } = body::of_value(content.fields().clone())?;
    let saved = on_disk(&saves, move |contexts| contexts.get(&name)).await?;
    let inference = saves.inference;
    let mut tiers = inference.tiers.snapshot();
    if model.is_none() {
        tiers.retain(|tier| tier.engine == EngineKind::Embedded);
    }
    let tier = tier_for(&saved, model.as_deref(), &tiers)?;
    route::check_engine(&tier, &tiers, LOAD)?;
    let job = dispatch::Job {
        inference,
        tier,
        stands_in_for: None,
        why: None,
        request: relay::UpstreamRequest {
            path: LOAD,
            charge: Charge::new(Caller::of_this_request(), content.bytes().len()),
            content,
            stream: false,
            keep_alive: None,
            arrived,
            trace: Trace::default(),
        },
    };
    job.begin().respond().await
}

/// The tier for a context. Of those with the model that is wanted, or else the one that it was saved with, one with its KV
/// type and room for its tokens comes first: any other will refuse it.
///
/// # Errors
/// `ContextMismatch` if no model is wanted and no tier has the context's; those of [`route::resolve`].
fn tier_for(saved: &Saved, wanted: Option<&str>, tiers: &[TierStatus]) -> Result<TierId, Error> {
    let other_model = |tier: &TierStatus| tier.model.as_ref() != Some(&saved.model);
    let any = matches!(wanted, None | Some("" | TierId::AUTO));
    if any && tiers.iter().all(other_model) {
        let (name, model) = (&saved.name, &saved.model);
        let message =
            format!("the saved context \"{name}\" belongs to {model}, which no tier uses now");
        return Err(Error::new(Code::ContextMismatch, message)
            .hint("assign the model to a tier, or save the context again"));
    }
    let refuses = |tier: &TierStatus| {
        saved.tokens >= tier.context_tokens as usize || tier.kv_cache != saved.key.kv_cache
    };
    route::resolve_by(wanted, tiers, |tier| (other_model(tier), refuses(tier)))
}

/// What concerns a client: the key is the worker's.
fn to_json(saved: &Saved) -> Value {
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
    saves: &Saves,
    work: impl FnOnce(&Contexts) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let contexts = saves.contexts.clone();
    blocking("the saved contexts", move || work(&contexts)).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, json, tier};
    use axum::{Router, routing::post};
    use tierbar_contexts::Key;
    use tierbar_core::{ModelId, TierState, config::KvCache};

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
    async fn a_context_loads_into_a_tier_of_its_model() {
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

    #[test]
    fn a_context_prefers_a_tier_with_its_kv_type_and_room() {
        let saved: Saved = serde_json::from_value(json!({
            "name": "talk", "model": "small", "tokens": 2000, "created": 0,
            "key": {"model": "m", "template": "t", "kv_cache": "q8_0", "engine": "e"},
        }))
        .unwrap();
        let mut tiers = [
            tier("other", Some("large"), TierState::Ready),
            tier("plain", Some("small"), TierState::Ready),
            tier("short", Some("small"), TierState::Ready),
            tier("suits", Some("small"), TierState::Stopped),
        ];
        tiers[2].context_tokens = 2000;
        for tier in &mut tiers {
            tier.kv_cache = KvCache::Q8_0;
        }
        tiers[1].kv_cache = KvCache::F16;
        let chosen = |wanted, tiers: &[TierStatus]| {
            let tier = tier_for(&saved, wanted, tiers);
            tier.map(|tier| tier.to_string())
                .map_err(|error| error.code)
        };
        for wanted in [None, Some("small"), Some("auto")] {
            assert_eq!(chosen(wanted, &tiers), Ok("suits".into()));
            // Without it a tier of the model says what does not fit.
            assert_eq!(chosen(wanted, &tiers[..3]), Ok("plain".into()));
        }
        assert_eq!(chosen(Some("short"), &tiers), Ok("short".into()));
        assert_eq!(chosen(Some("large"), &tiers), Ok("other".into()));
        for any in [None, Some(""), Some("auto")] {
            assert_eq!(chosen(any, &tiers[..1]), Err(Code::ContextMismatch));
        }
        assert_eq!(chosen(Some("gone"), &tiers), Err(Code::ModelUnknown));
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

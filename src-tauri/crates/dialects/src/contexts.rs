//! Saved contexts: listed, deleted, uploaded and downloaded here, where no model need be loaded; saved and loaded by the worker of
//! their model.

pub mod schema;
pub mod store;

use axum::{Json, body::Body, extract::State, response::Response};
use schema::{ContextDeleted, ContextEntry, ContextSave, SavedContext};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{sync::Arc, time::Instant};
use store::RemoteContexts;
use tierbar_contexts::{ContextDescription, Contexts};
use tierbar_core::{
    Code, Error, TierId,
    config::ContextForm,
    status::{EngineKind, TierStatus},
};
use tierbar_fetch::blocking;
use tierbar_http::{Answer, InferenceCall, RequestHints, error::Failure, mount::Routes, routes};
use tierbar_inference::{
    Inference, body, caller::Caller, charge::Charge, content::Content, dispatch, hints::Hints,
    request::Request, route, source::Source,
};
use utoipa::ToSchema;

pub const SAVE: &str = "/v1/context/save";
pub const LOAD: &str = "/v1/context/load";

/// What contexts are saved with.
#[derive(Debug, Clone)]
struct Saves {
    inference: Arc<Inference>,
    contexts: Contexts,
    remote: Arc<RemoteContexts>,
}

pub fn routes(inference: Arc<Inference>, contexts: Contexts) -> Routes {
    Routes::default()
        .routes(routes!(list))
        .routes(routes!(save))
        .routes(routes!(load))
        .routes(routes!(delete))
        .routes(routes!(upload))
        .routes(routes!(download))
        .routes(routes!(list_store))
        .with_state(Saves {
            remote: Arc::new(RemoteContexts::new(
                Arc::clone(&inference),
                contexts.clone(),
            )),
            inference,
            contexts,
        })
}

/// A saved context.
#[derive(Deserialize, ToSchema)]
struct ContextName {
    name: String,
    /// To load it: a tier, a model's id, or `auto`, which prefers a tier that the context fits.
    model: Option<String>,
}

/// A saved context to delete.
#[derive(Deserialize, ToSchema)]
struct ContextDelete {
    name: String,
    /// Whether to delete the one in the store, rather than the one on this machine.
    #[serde(default)]
    store: bool,
}

/// A saved context to copy to the store or from it.
#[derive(Deserialize, ToSchema)]
struct ContextCopy {
    name: String,
    /// Whether to replace another context of this name at the destination; else that is a `conflict`.
    #[serde(default)]
    replace: bool,
}

/// Lists all saved contexts, newest first.
#[utoipa::path(
    get,
    path = "/v1/context",
    operation_id = "listContexts",
    reach(Owner, Reads),
    responses((status = 200, description = "The list", body = schema::Contexts)),
)]
async fn list(State(saves): State<Saves>) -> Answer<Value> {
    let all = on_disk(&saves, |contexts| contexts.list()).await?;
    Ok(to_list(&all))
}

/// Saves a conversation's KV cache.
#[utoipa::path(
    post,
    path = SAVE,
    operation_id = "saveContext",
    reach(Owner, Writes, Spends, Counts),
    request_body = ContextSave,
    responses((status = 200, description = "The saved context", body = SavedContext)),
)]
async fn save(
    State(saves): State<Saves>,
    RequestHints(hints): RequestHints,
    mut body: Body,
) -> Result<Response, Failure> {
    // The worker knows no settings.
    let form = saves.inference.services.config().contexts.form;
    if form != ContextForm::Exact {
        let read = body::read(body, body::INFERENCE_LIMIT).await?;
        let mut fields = Content::read(read)?.0.into_object();
        if fields.get("form").is_none_or(Value::is_null) {
            fields.insert("form".to_owned(), json!(form));
        }
        body = Body::from(Content::new(fields).into_bytes());
    }
    InferenceCall(saves.inference, hints, body)
        .answer(SAVE)
        .await
}

/// Deletes a saved context.
#[utoipa::path(
    post,
    path = "/v1/context/delete",
    operation_id = "deleteContext",
    reach(Owner, Writes),
    request_body = ContextDelete,
    responses((status = 200, description = "The context is deleted", body = ContextDeleted)),
)]
async fn delete(State(saves): State<Saves>, body: Body) -> Answer<Value> {
    let ContextDelete { name, store } = body::parse(&body::read(body, body::ADMIN_LIMIT).await?)?;
    let versions_kept = if store {
        saves.remote.remove(&name).await?
    } else {
        let removed = name.clone();
        on_disk(&saves, move |contexts| contexts.remove(&removed)).await?;
        false
    };
    Ok(Json(
        json!({"name": name, "deleted": true, "versions_kept": versions_kept}),
    ))
}

/// Encrypts a saved context and copies it to the store.
#[utoipa::path(
    post,
    path = "/v1/context/upload",
    operation_id = "uploadContext",
    reach(Owner, Reads, Opens),
    request_body = ContextCopy,
    responses((status = 200, description = "The context that the store has now", body = ContextEntry)),
)]
async fn upload(State(saves): State<Saves>, body: Body) -> Answer<Value> {
    let ContextCopy { name, replace } = body::parse(&body::read(body, body::ADMIN_LIMIT).await?)?;
    let saved = saves.remote.upload(&name, replace).await?;
    Ok(Json(to_json(&saved)))
}

/// Copies a context from the store and decrypts it.
#[utoipa::path(
    post,
    path = "/v1/context/download",
    operation_id = "downloadContext",
    reach(Owner, Writes, Opens),
    request_body = ContextCopy,
    responses((status = 200, description = "The context that this machine has now", body = ContextEntry)),
)]
async fn download(State(saves): State<Saves>, body: Body) -> Answer<Value> {
    let ContextCopy { name, replace } = body::parse(&body::read(body, body::ADMIN_LIMIT).await?)?;
    let saved = saves.remote.download(&name, replace).await?;
    Ok(Json(to_json(&saved)))
}

/// Lists the contexts in the store, newest first; none if no store is set.
#[utoipa::path(
    get,
    path = "/v1/context/store",
    operation_id = "listStoredContexts",
    reach(Owner, Reads),
    responses((status = 200, description = "The list", body = schema::Contexts)),
)]
async fn list_store(State(saves): State<Saves>) -> Answer<Value> {
    Ok(to_list(&saves.remote.list().await?))
}

/// Loads a saved context into memory.
#[utoipa::path(
    post,
    path = LOAD,
    operation_id = "loadContext",
    reach(Owner, Reads, Spends, Counts),
    request_body = ContextName,
    responses((status = 200, description = "The loaded context", body = SavedContext)),
)]
async fn load(State(saves): State<Saves>, body: Body) -> Result<Response, Failure> {
    let arrived = Instant::now();
    let body = body::read(body, body::ADMIN_LIMIT).await?;
    let mut request = Request::read(LOAD, Hints::default(), body, arrived)?;
    let ContextName { name, model } = body::of_value(request.content.fields().clone())?;
    let saved = on_disk(&saves, move |contexts| contexts.get(&name)).await?;
    let inference = saves.inference;
    let mut tiers = inference.tiers.snapshot();
    if model.is_none() {
        tiers.retain(|tier| tier.engine == EngineKind::Embedded);
    }
    let tier = tier_for(&saved, model.as_deref(), &tiers)?;
    route::check_engine(&tier, &tiers, LOAD)?;
    let bytes = request.content.bytes().len();
    request.charge = Charge::new(Caller::of_this_request(), bytes);
    request.keep_alive = None;
    let begun = dispatch::begin_on_tier(inference, tier, request, Source::default());
    Ok(begun.respond().await?.map(Body::new))
}

/// The tier for a context. Of those with the model that is wanted, or else the one that it was saved with, one with its KV
/// type and room for its tokens comes first: any other will refuse it.
fn tier_for(
    saved: &ContextDescription,
    wanted: Option<&str>,
    tiers: &[TierStatus],
) -> Result<TierId, Error> {
    let other_model = |tier: &TierStatus| tier.model.as_ref() != Some(&saved.model);
    if route::leaves_choice(wanted) && tiers.iter().all(other_model) {
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
fn to_json(saved: &ContextDescription) -> Value {
    json!({
        "name": saved.name,
        "model": saved.model,
        "tokens": saved.tokens,
        "bytes": saved.bytes,
        "raw_bytes": saved.raw_bytes(),
        "created": saved.created,
        "kv_cache": saved.key.kv_cache,
        "form": saved.form(),
    })
}

fn to_list(all: &[ContextDescription]) -> Json<Value> {
    let data: Vec<_> = all.iter().map(to_json).collect();
    Json(json!({"object": "list", "data": data}))
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
    use crate::testing::tier;
    use tierbar_core::{TierState, config::KvCache};

    #[test]
    fn a_context_prefers_a_tier_with_its_kv_type_and_room() {
        let saved: ContextDescription = serde_json::from_value(json!({
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
}

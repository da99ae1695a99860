//! Saved contexts: listed, deleted, uploaded and downloaded here, where no model need be loaded; saved and loaded by the worker of
//! their model.

mod schema;
mod store;

use crate::{
    blocking::blocking,
    http::{body, error::Failure, routes::routes, schema::Errors},
    inference::{
        Inference, caller::Caller, charge::Charge, content::Content, dispatch, hints::Hints, relay,
        route, stream_meter::Reads,
    },
    metrics::Trace,
};
use axum::{Json, body::Body, extract::State, http::HeaderMap, response::Response};
use schema::{Context, ContextDeleted, ContextSave, SavedContext};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{sync::Arc, time::Instant};
use store::RemoteContexts;
use tierbar_contexts::{Contexts, Saved};
use tierbar_core::{
    Code, Error, TierId,
    config::ContextForm,
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
    remote: Arc<RemoteContexts>,
}

pub(crate) fn routes(inference: Arc<Inference>, contexts: Contexts) -> OpenApiRouter {
    OpenApiRouter::default()
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
#[schema(as = ContextName)]
struct Named {
    name: String,
    /// To load it: a tier, a model's id, or `auto`, which prefers a tier that the context fits.
    #[serde(default)]
    model: Option<String>,
}

/// A saved context to delete.
#[derive(Deserialize, ToSchema)]
#[schema(as = ContextDelete)]
struct Deleted {
    name: String,
    /// Whether to delete the one in the store, rather than the one on this machine.
    #[serde(default)]
    store: bool,
}

/// A saved context to copy to the store or from it.
#[derive(Deserialize, ToSchema)]
#[schema(as = ContextCopy)]
struct Copied {
    name: String,
    /// Whether to replace another context of this name at the destination; else that is a `conflict`.
    #[serde(default)]
    replace: bool,
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
    // The worker knows no settings.
    let form = saves.inference.services.config().contexts.form;
    let body = match form {
        ContextForm::Exact => body,
        ContextForm::Compact => in_form(body, form).await?,
    };
    dispatch::answer(saves.inference, SAVE, hints, body).await
}

/// The request with a form, if it names none.
async fn in_form(body: Body, form: ContextForm) -> Result<Body, Failure> {
    let body = body::read(body, body::INFERENCE_LIMIT).await?;
    let (content, _) = Content::read(body)?;
    let mut fields = content.into_object();
    if fields.get("form").is_none_or(Value::is_null) {
        fields.insert("form".to_owned(), json!(form));
    }
    Ok(Body::from(Content::new(fields).into_bytes()))
}

/// Deletes a saved context.
#[utoipa::path(
    post,
    path = "/v1/context/delete",
    tag = "contexts",
    operation_id = "deleteContext",
    request_body = Deleted,
    responses((status = 200, description = "The context is deleted", body = ContextDeleted), Errors),
)]
async fn delete(State(saves): State<Saves>, body: Body) -> Result<Json<Value>, Failure> {
    let Deleted { name, store } = body::parse(&body::read(body, body::ADMIN_LIMIT).await?)?;
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
    tag = "contexts",
    operation_id = "uploadContext",
    request_body = Copied,
    responses((status = 200, description = "The context that the store has now", body = Context), Errors),
)]
async fn upload(State(saves): State<Saves>, body: Body) -> Result<Json<Value>, Failure> {
    let Copied { name, replace } = body::parse(&body::read(body, body::ADMIN_LIMIT).await?)?;
    let saved = saves.remote.upload(&name, replace).await?;
    Ok(Json(to_json(&saved)))
}

/// Copies a context from the store and decrypts it.
#[utoipa::path(
    post,
    path = "/v1/context/download",
    tag = "contexts",
    operation_id = "downloadContext",
    request_body = Copied,
    responses((status = 200, description = "The context that this machine has now", body = Context), Errors),
)]
async fn download(State(saves): State<Saves>, body: Body) -> Result<Json<Value>, Failure> {
    let Copied { name, replace } = body::parse(&body::read(body, body::ADMIN_LIMIT).await?)?;
    let saved = saves.remote.download(&name, replace).await?;
    Ok(Json(to_json(&saved)))
}

/// Lists the contexts in the store, newest first; none if no store is set.
#[utoipa::path(
    get,
    path = "/v1/context/store",
    tag = "contexts",
    operation_id = "listStoredContexts",
    responses((status = 200, description = "The list", body = schema::Contexts), Errors),
)]
async fn list_store(State(saves): State<Saves>) -> Result<Json<Value>, Failure> {
    let all = saves.remote.list().await?;
    let data: Vec<_> = all.iter().map(to_json).collect();
    Ok(Json(json!({"object": "list", "data": data})))
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
            original: None,
            headers: HeaderMap::new(),
            reads: Reads::Nothing,
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
        "raw_bytes": saved.raw_bytes(),
        "created": saved.created,
        "kv_cache": saved.key.kv_cache,
        "form": saved.form(),
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

    /// With a store in a folder.
    async fn with_store() -> (Bench, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store").display().to_string();
        let bench =
            Bench::configured("127.0.0.1:11435", |config| config.contexts.store = store).await;
        (bench, folder)
    }

    async fn set_passphrase(bench: &Bench, passphrase: &str) {
        let path = "/tierbar/v1/secrets/context-passphrase";
        let body = Body::from(json!({"value": passphrase}).to_string());
        assert_eq!(bench.ask("PUT", path, body).await.status(), 204);
    }

    #[tokio::test]
    async fn a_context_goes_to_the_store_and_comes_back() {
        let (bench, folder) = with_store().await;
        save(&bench, "talk", "small");
        let upload = |body: &'static str| bench.post("/v1/context/upload", body);
        let download = |body: &'static str| bench.post("/v1/context/download", body);
        let talk = r#"{"name":"talk"}"#;
        let without = json(upload(talk).await).await;
        assert!(
            without["error"]["message"]
                .as_str()
                .unwrap()
                .contains("passphrase"),
            "{without}"
        );
        set_passphrase(&bench, "correct horse battery").await;
        let missing = json(upload(r#"{"name":"walk"}"#).await).await;
        assert_eq!(missing["error"]["code"], "context_unknown");
        let missing = json(download(talk).await).await;
        assert_eq!(missing["error"]["code"], "context_unknown", "{missing}");
        let uploaded = json(upload(talk).await).await;
        assert_eq!(uploaded["tokens"], 7, "{uploaded}");
        let listed = json(bench.get("/v1/context/store").await).await;
        assert_eq!(listed["data"], json!([uploaded]));
        // The same again changes nothing; another one of this name is kept.
        assert_eq!(upload(talk).await.status(), 200);
        assert_eq!(download(talk).await.status(), 200);
        bench.contexts.remove("talk").unwrap();
        save(&bench, "talk", "large");
        for taken in [upload(talk).await, download(talk).await] {
            assert_eq!(json(taken).await["error"]["code"], "conflict");
        }
        let replaced = json(download(r#"{"name":"talk","replace":true}"#).await).await;
        assert_eq!(replaced, uploaded);
        bench.contexts.check("talk").unwrap();
        // What the store has is unreadable, and nothing of it is used if it was changed.
        bench.contexts.remove("talk").unwrap();
        let entries = std::fs::read_dir(folder.path().join("store")).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        let file = paths
            .into_iter()
            .find(|path| path.extension().is_some_and(|end| end == "tierbar"));
        let file = file.unwrap();
        let mut bytes = std::fs::read(&file).unwrap();
        assert!(!bytes.windows(4).any(|window| window == b"talk"));
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        std::fs::write(&file, &bytes).unwrap();
        assert_eq!(json(download(talk).await).await["error"]["code"], "corrupt");
        assert_eq!(bench.contexts.list().unwrap(), []);
        let delete = || bench.post("/v1/context/delete", r#"{"name":"talk","store":true}"#);
        assert_eq!(delete().await.status(), 200);
        assert_eq!(delete().await.status(), 404);
    }

    #[tokio::test]
    async fn a_download_needs_the_passphrase_and_a_tier_of_the_model() {
        let (bench, _folder) = with_store().await;
        set_passphrase(&bench, "correct horse battery").await;
        save(&bench, "other", "large");
        let other = r#"{"name":"other"}"#;
        assert_eq!(bench.post("/v1/context/upload", other).await.status(), 200);
        let refused = json(bench.post("/v1/context/download", other).await).await;
        assert_eq!(refused["error"]["code"], "context_mismatch");
        set_passphrase(&bench, "wrong horse battery").await;
        let refused = json(bench.get("/v1/context/store").await).await;
        assert_eq!(refused["error"]["code"], "access_denied");
    }

    #[tokio::test]
    async fn without_a_store_nothing_is_uploaded() {
        let bench = Bench::new("127.0.0.1:11435").await;
        save(&bench, "talk", "small");
        let listed = json(bench.get("/v1/context/store").await).await;
        assert_eq!(listed["data"], json!([]));
        let refused = json(bench.post("/v1/context/upload", r#"{"name":"talk"}"#).await).await;
        assert_eq!(refused["error"]["code"], "bad_request");
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains("no store"), "{message}");
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

    #[tokio::test]
    async fn a_save_has_the_form_that_it_names_or_the_configured_one() {
        for (configured, asked, form) in [
            (ContextForm::Exact, "", Value::Null),
            (ContextForm::Exact, r#","form":"compact""#, json!("compact")),
            (ContextForm::Compact, "", json!("compact")),
            (ContextForm::Compact, r#","form":null"#, json!("compact")),
            (ContextForm::Compact, r#","form":"exact""#, json!("exact")),
        ] {
            let bench = Bench::configured("127.0.0.1:11435", |config| {
                config.contexts.form = configured;
            })
            .await;
            bench.load(worker());
            let body = format!(r#"{{"name":"n","model":"fast","prompt":"p"{asked}}}"#);
            let saved = json(bench.post(SAVE, body).await).await;
            assert_eq!(saved["asked"]["form"], form, "{configured:?} {asked}");
            assert_eq!(saved["asked"]["prompt"], "p");
        }
    }
}

use crate::testing::{Bench, json};
use axum::{Json, body::Body};
use axum::{Router, routing::post};
use serde_json::{Value, json};
use tierbar_contexts::Key;
use tierbar_core::{ModelId, config::ContextForm, config::KvCache};
use tierbar_dialects::contexts::{LOAD, SAVE};

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
    let delete = || bench.ask("POST", "/v1/context/delete", r#"{"name":"talk"}"#);
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
    let loaded = bench.ask("POST", LOAD, r#"{"name":"mine"}"#).await;
    assert_eq!(loaded.status(), 200);
    assert_eq!(loaded.headers()["x-tierbar-tier"], "fast");
    assert_eq!(json(loaded).await["asked"]["name"], "mine");
    let refused = bench.ask("POST", LOAD, r#"{"name":"other"}"#).await;
    assert_eq!(refused.status(), 409);
    let refused = json(refused).await;
    assert_eq!(refused["error"]["code"], "context_mismatch");
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("large")
    );
    let named = bench
        .ask("POST", LOAD, r#"{"name":"other","model":"fast"}"#)
        .await;
    assert_eq!(named.status(), 200);
}

/// With a store in a folder.
async fn with_store() -> (Bench, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().canonicalize().unwrap();
    let store = real.join("store").display().to_string();
    let bench = Bench::configured("127.0.0.1:11435", |config| config.contexts.store = store).await;
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
    let upload = |body: &'static str| bench.ask("POST", "/v1/context/upload", body);
    let download = |body: &'static str| bench.ask("POST", "/v1/context/download", body);
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
    let delete = || {
        bench.ask(
            "POST",
            "/v1/context/delete",
            r#"{"name":"talk","store":true}"#,
        )
    };
    assert_eq!(delete().await.status(), 200);
    assert_eq!(delete().await.status(), 404);
}

#[tokio::test]
async fn a_download_needs_the_passphrase_and_a_tier_of_the_model() {
    let (bench, _folder) = with_store().await;
    set_passphrase(&bench, "correct horse battery").await;
    save(&bench, "other", "large");
    let other = r#"{"name":"other"}"#;
    assert_eq!(
        bench
            .ask("POST", "/v1/context/upload", other)
            .await
            .status(),
        200
    );
    let refused = json(bench.ask("POST", "/v1/context/download", other).await).await;
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
    let refused = json(
        bench
            .ask("POST", "/v1/context/upload", r#"{"name":"talk"}"#)
            .await,
    )
    .await;
    assert_eq!(refused["error"]["code"], "bad_request");
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("no store"), "{message}");
}

#[tokio::test]
async fn a_save_goes_to_the_tier_that_it_names() {
    let bench = Bench::new("127.0.0.1:11435").await;
    bench.load(worker());
    let body = r#"{"name":"n","model":"fast","prompt":"p"}"#;
    let saved = bench.ask("POST", SAVE, body).await;
    assert_eq!(saved.headers()["x-tierbar-model"], "small");
    assert_eq!(json(saved).await["asked"]["prompt"], "p");
    let unknown = bench
        .ask("POST", SAVE, r#"{"name":"n","model":"gpt-5"}"#)
        .await;
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
        let saved = json(bench.ask("POST", SAVE, body).await).await;
        assert_eq!(saved["asked"]["form"], form, "{configured:?} {asked}");
        assert_eq!(saved["asked"]["prompt"], "p");
    }
}

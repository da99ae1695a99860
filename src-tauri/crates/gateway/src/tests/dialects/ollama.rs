mod answers;
mod models;
mod owners;

use crate::testing::{Bench, json, text};
use axum::{
    Json, Router,
    body::Body,
    http::{Request, header},
    response::{IntoResponse, Response},
    routing::post,
};
use serde_json::{Value, json};
use std::{
    future::ready,
    sync::{Arc, Mutex},
};
use tierbar_core::fit::LibraryModel;
use tower::ServiceExt;

const ADDRESS: &str = "127.0.0.1:11435";
const CHAT: &str = "/v1/chat/completions";
const SHA256: &str = "5d4d1d1a5d4d1d1a5d4d1d1a5d4d1d1a5d4d1d1a5d4d1d1a5d4d1d1a5d4d1d1a";

async fn bench() -> Bench {
    Bench::new(ADDRESS).await
}

/// A worker that answers alike, and what it was asked.
fn worker(
    path: &'static str,
    answer: impl Fn() -> Response + Clone + Send + Sync + 'static,
) -> (Router, Arc<Mutex<Value>>) {
    let asked = Arc::new(Mutex::new(Value::Null));
    let heard = Arc::clone(&asked);
    let answer = move |Json(body): Json<Value>| {
        *heard.lock().unwrap() = body;
        ready(answer())
    };
    (Router::new().route(path, post(answer)), asked)
}

fn events(stream: &'static str) -> Response {
    ([(header::CONTENT_TYPE, "text/event-stream")], stream).into_response()
}

async fn lines(response: Response) -> Vec<Value> {
    let reply = text(response).await;
    assert!(reply.ends_with('\n'), "{reply}");
    reply
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn small() -> LibraryModel {
    serde_json::from_value(json!({
        "id": "small", "path": "/models/small.gguf", "size_bytes": 98_000_000, "keeper": "tierbar", "error": null,
        "reference": "a/b:Q4_1", "sha256": SHA256, "projector": "/models/mmproj.gguf",
        "input_modalities": ["text", "image"], "tiers": ["fast"], "fit": null,
        "account": {
            "architecture": "llama", "name": "Small", "quant": "Q4_1", "file_bytes": 98_000_000, "parts": 1, "dense_bytes": 1,
            "embedding_bytes": 1, "per_layer_embedding_bytes": 0, "expert_bytes": 0, "parameters": 134_515_008,
            "tied_output": true, "layers": 30, "heads": 9, "kv_heads": 3, "experts": 0, "experts_used": 0, "embedding": 576,
            "vocabulary": 49152, "context_train": 2048, "chat_template": true, "thinking": false, "tools": true,
            "kv": {"full_elements_per_token": 1, "sliding_elements_per_cell": 0, "window": 0, "state_bytes": 0},
        },
    }))
    .unwrap()
}

#[tokio::test]
async fn paths_of_ollamas_own_store_are_refused_with_a_hint() {
    let bench = bench().await;
    for path in [
        "/api/copy",
        "/api/create",
        "/api/push",
        "/api/blobs/sha256:00",
    ] {
        let refused = bench.post(path, "{}").await;
        assert_eq!(refused.status(), 400, "{path}");
        let reply = json(refused).await;
        assert!(reply["error"].as_str().unwrap().contains(path));
        assert!(reply["hint"].as_str().unwrap().contains("add a tier"));
    }
    let nothing = bench.post("/api/nothing", "{}").await;
    assert_eq!(nothing.status(), 404);
    assert!(json(nothing).await["error"].is_string());
}

#[tokio::test]
async fn beyond_loopback_the_token_is_needed() {
    let bench = Bench::new("0.0.0.0:11435").await;
    let open = bench.post("/api/chat", "{}").await;
    assert_eq!(open.status(), 401);
    assert_eq!(bench.get("/api/version").await.status(), 200);
}

#[tokio::test]
async fn ollamas_port_has_its_greeting_and_the_same_api() {
    let bench = bench().await;
    let router = tierbar_dialects::ollama::as_ollama(bench.router.clone());
    let ask = |method: &str, path: &str| {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "localhost:11434");
        router.clone().oneshot(request.body(Body::empty()).unwrap())
    };
    assert_eq!(
        text(ask("GET", "/").await.unwrap()).await,
        "Ollama is running"
    );
    assert_eq!(ask("HEAD", "/").await.unwrap().status(), 200);
    let version = json(ask("GET", "/api/version").await.unwrap()).await;
    assert_eq!(version["version"], tierbar_dialects::ollama::VERSION);
    let parts = tierbar_dialects::ollama::VERSION
        .split('.')
        .map(str::parse::<u32>);
    assert_eq!(
        parts.filter(Result::is_ok).count(),
        3,
        "clients compare numbers"
    );
    let ours = bench.get("/").await;
    assert_ne!(text(ours).await, "Ollama is running");
}

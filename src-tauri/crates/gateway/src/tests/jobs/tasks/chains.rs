//! A chain that is asked for a task: what it says beside its answer reaches the task's client.

use super::*;
use crate::testing::{json, text};
use axum::{
    body::Body,
    http::{Request, header},
};
use std::sync::atomic::{AtomicBool, Ordering};
use tierbar_core::TierId;

const CALM: &str = r#"{"type": "fyi", "urgency": 1, "needs_cloud": false}"#;

/// A chain `night`: a cloud that refuses while it is down, and what comes behind it.
async fn night(behind: &str) -> (Bench, Arc<AtomicBool>) {
    let (bench, _) = scripted(|_, request| answer(request, CALM)).await;
    let down = Arc::new(AtomicBool::new(true));
    let is_down = Arc::clone(&down);
    let answer = move |Json(request): Json<Value>| {
        std::future::ready(if is_down.load(Ordering::SeqCst) {
            refuses(StatusCode::INTERNAL_SERVER_ERROR, json!({}))
        } else {
            answer(&request, CALM)
        })
    };
    let routes = Router::new().route("/v1/chat/completions", post(answer));
    bench.endpoint("cloud", routes).await;
    let chain = json!({"steps": ["cloud", behind], "retries": 0});
    let chain = serde_json::from_value(chain).unwrap();
    let name = TierId::new("night").unwrap();
    bench.config.lock().unwrap().chains.insert(name, chain);
    (bench, down)
}

#[tokio::test]
async fn a_chain_that_ends_in_the_queue_keeps_a_task() {
    let (bench, _) = night("queue").await;
    for (path, ask) in [
        ("/v1/triage", json!({"text": "x", "model": "night"})),
        ("/v1/triage", json!({"texts": ["x", "y"], "model": "night"})),
        (
            "/v1/compress",
            json!({"text": "one two three four five six", "words": 5, "model": "night"}),
        ),
        ("/v1/summarize", json!({"text": "x", "model": "night"})),
        (
            "/v1/brief",
            json!({"lines": "{\"message\": \"x\"}", "model": "night"}),
        ),
    ] {
        let kept = bench.post(path, ask.to_string()).await;
        assert_eq!(kept.status(), 202, "{path} {ask}");
    }
}

#[tokio::test]
async fn with_queue_never_the_failure_is_returned() {
    let (bench, _) = night("queue").await;
    let ask = Request::post("/v1/triage")
        .header(header::HOST, "localhost")
        .header("x-tierbar-queue", "never")
        .body(Body::from(r#"{"text": "x", "model": "night"}"#))
        .unwrap();
    let refused = bench.send(ask).await;
    assert_eq!(refused.status(), 502);
    assert_eq!(refused.headers()["x-tierbar-tried"], "cloud=unreachable");
}

#[tokio::test]
async fn a_queued_task_is_answered_later() {
    let (mut bench, down) = night("queue").await;
    let ask = Request::post("/v1/triage")
        .header(header::HOST, "localhost")
        .header("x-tierbar-chain", "night")
        .body(Body::from(r#"{"text": "x"}"#))
        .unwrap();
    let kept = bench.send(ask).await;
    assert_eq!(kept.status(), 202);
    let url = kept.headers()[header::LOCATION].to_str().unwrap();
    down.store(false, Ordering::SeqCst);
    tokio::spawn(bench.runner.take().unwrap().run());
    text(bench.get(&format!("{url}/events")).await).await;
    let answer = json(bench.get(&format!("{url}/result")).await).await;
    assert_eq!(answer["tier"], "cloud", "{answer}");
}

#[tokio::test]
async fn a_streaming_task_gets_its_failure() {
    let (bench, _) = night("queue").await;
    let ask = json!({"text": "x", "model": "night", "stream": true});
    let answer = bench.post("/v1/summarize", ask.to_string()).await;
    assert_eq!(answer.status(), 200);
    let reply = text(answer).await;
    assert!(reply.contains("event: error"), "{reply}");
}

#[tokio::test]
async fn a_text_that_can_never_be_answered_is_not_queued() {
    let (bench, _) = night("queue").await;
    for (texts, status) in [(["", "x"], 400), (["x", ""], 202)] {
        let ask = json!({"texts": texts, "model": "night"}).to_string();
        let answer = bench.post("/v1/triage", ask).await;
        assert_eq!(answer.status(), status, "{texts:?}");
    }
}

#[tokio::test]
async fn a_tasks_answer_names_its_tier_and_the_replaced_one() {
    let (bench, down) = night("fast").await;
    let triage = async |ask: Value| {
        let answer = bench.post("/v1/triage", ask.to_string()).await;
        assert_eq!(answer.status(), 200);
        answer
    };
    let answer = triage(json!({"text": "x"})).await;
    assert_eq!(answer.headers()["x-tierbar-tier"], "fast");
    assert_eq!(answer.headers()["x-tierbar-model"], "small");
    assert!(json(answer).await.get("tierbar").is_none());
    let answer = triage(json!({"text": "x", "model": "auto"})).await;
    assert!(answer.headers().contains_key("x-tierbar-why"));

    for ask in [
        json!({"text": "x", "model": "night"}),
        json!({"texts": ["x"], "model": "night"}),
    ] {
        let answer = triage(ask.clone()).await;
        for (name, value) in [
            ("tier", "fast"),
            ("model", "small"),
            ("chain", "night"),
            ("tried", "cloud=unreachable"),
            ("fallback-from", "cloud"),
        ] {
            let name = format!("x-tierbar-{name}");
            assert_eq!(answer.headers()[&name], value, "{name} {ask}");
        }
        let reply = json(answer).await;
        let one = reply.pointer("/results/0").unwrap_or(&reply);
        assert_eq!(one["tierbar"]["fallback_from"], "cloud", "{reply}");
    }
    let metrics = text(bench.get("/metrics").await).await;
    let counted = metrics
        .lines()
        .find(|line| line.contains("tierbar_requests_total{path=\"/v1/triage\""));
    assert!(counted.unwrap().contains("tier=\"fast\""), "{counted:?}");

    down.store(false, Ordering::SeqCst);
    let answer = triage(json!({"text": "x", "model": "night"})).await;
    assert_eq!(answer.headers()["x-tierbar-tier"], "cloud");
    assert!(!answer.headers().contains_key("x-tierbar-fallback-from"));
}

#[tokio::test]
async fn a_fallback_for_one_piece_is_reported_for_all() {
    let (bench, _) = scripted(|_, request| says_text(request, "Something was.")).await;
    let asked = Arc::new(Mutex::new(0));
    let answer = move |Json(request): Json<Value>| {
        let mut asked = asked.lock().unwrap();
        *asked += 1;
        let reply = match *asked {
            1 => refuses(StatusCode::INTERNAL_SERVER_ERROR, json!({})),
            _ => says_text(&request, "Something was."),
        };
        std::future::ready(reply)
    };
    let routes = Router::new().route("/v1/chat/completions", post(answer));
    bench.endpoint("cloud", routes).await;
    let chain = json!({"steps": ["cloud", "fast"], "retries": 0});
    let chain = serde_json::from_value(chain).unwrap();
    let name = TierId::new("night").unwrap();
    bench.config.lock().unwrap().chains.insert(name, chain);
    let long = "It has happened on that day to a friend. ".repeat(1500);
    let mut ask = json!({"text": long, "model": "night"});
    let answer = bench.post("/v1/summarize", ask.to_string()).await;
    assert_eq!(answer.headers()["x-tierbar-tier"], "cloud");
    assert_eq!(answer.headers()["x-tierbar-fallback-from"], "cloud");
    let reply = json(answer).await;
    assert_eq!(reply["tierbar"]["fallback_from"], "cloud", "{reply}");
    ask["stream"] = true.into();
    let reply = text(bench.post("/v1/summarize", ask.to_string()).await).await;
    assert!(
        reply.contains("\"tierbar\":{\"chain\":\"night\""),
        "{reply}"
    );
}

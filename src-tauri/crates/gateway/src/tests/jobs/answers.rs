use crate::testing::{Bench, json, tier};
use axum::{Router, body::Bytes, http::StatusCode, response::IntoResponse, routing::post};
use serde_json::{Value, json};
use std::time::Duration;
use tierbar_core::{Code, Error, TierState, config::Engine};
use tokio::sync::watch;

const PATH: &str = "/tierbar/v1/setup/answers";

/// A gateway with two tiers: the first answers once the test lets it, and the second does not load.
async fn bench(go: &watch::Sender<bool>) -> Bench {
    let bench = Bench::new("127.0.0.1:11435").await;
    let go = go.subscribe();
    let answer = async move |body: Bytes| {
        let mut go = go.clone();
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["max_tokens"], 48);
        go.wait_for(|go| *go).await.unwrap();
        let chunk = json!({"choices": [{"index": 0, "delta": {"content": " With text. "}}]});
        let end = json!({
            "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13},
            "timings": {"predicted_ms": 200.0, "predicted_n": 4, "prompt_ms": 1.0},
        });
        let stream = format!("data: {chunk}\n\ndata: {end}\n\ndata: [DONE]\n\n");
        ([("content-type", "text/event-stream")], stream).into_response()
    };
    bench.load(Router::new().route(tierbar_inference::CHAT, post(answer)));
    bench.tiers(|tiers| tiers.push(tier("heavy", Some("big"), TierState::Stopped)));
    let refusal = Error::new(Code::OverBudget, "big does not fit").hint("quit other programs");
    bench.other("heavy", Err(refusal), Engine::default());
    bench
}

/// The answers once `is` holds for their states.
async fn when(bench: &Bench, is: &[&str]) -> Value {
    let mut last = Value::Null;
    for _ in 0..5000 {
        last = json(bench.get(PATH).await).await;
        let answers = last["answers"].as_array().unwrap().iter();
        if answers.map(|answer| &answer["state"]).eq(is) {
            return last;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("{is:?} did not come: {last}");
}

#[tokio::test]
async fn tiers_are_asked_in_turn_without_a_client() {
    let go = watch::Sender::new(false);
    let bench = bench(&go).await;
    let asked = bench
        .ask("POST", PATH, r#"{"tiers":["fast","heavy"]}"#)
        .await;
    assert_eq!(asked.status(), StatusCode::ACCEPTED);
    when(&bench, &["asking", "waiting"]).await;
    // What waits is not asked twice.
    bench.ask("POST", PATH, r#"{"tiers":["heavy"]}"#).await;
    go.send_replace(true);
    let body = when(&bench, &["answered", "failed"]).await;
    let answers = &body["answers"];
    assert_eq!(answers[0]["answer"], "With text.");
    assert_eq!(answers[0]["tokens_per_second"], 20.0);
    assert!(answers[0]["seconds"].as_f64().is_some());
    assert_eq!(answers[1]["error"], "big does not fit; quit other programs");
    assert_eq!(bench.ask("DELETE", PATH, "").await.status(), 204);
    when(&bench, &[]).await;
}

#[tokio::test]
async fn a_canceled_test_stops() {
    let go = watch::Sender::new(false);
    let bench = bench(&go).await;
    bench.ask("POST", PATH, r#"{"tiers":["fast"]}"#).await;
    when(&bench, &["asking"]).await;
    bench.ask("DELETE", PATH, "").await;
    when(&bench, &[]).await;
    // It can be asked again.
    bench.ask("POST", PATH, r#"{"tiers":["fast"]}"#).await;
    go.send_replace(true);
    when(&bench, &["answered"]).await;
}

#[tokio::test]
async fn an_unknown_tier_is_refused() {
    let bench = Bench::new("127.0.0.1:11435").await;
    for (body, status) in [
        (r#"{"tiers":["unknown"]}"#, StatusCode::NOT_FOUND),
        (r#"{"tiers":[]}"#, StatusCode::BAD_REQUEST),
        ("{}", StatusCode::BAD_REQUEST),
    ] {
        let refused = bench.ask("POST", PATH, body).await;
        assert_eq!(refused.status(), status, "{body}");
    }
    assert_eq!(json(bench.get(PATH).await).await, json!({"answers": []}));
}

//! Answers, whole and streamed, and the events around them.

use crate::{Events, FAST};
use reqwest::Method;
use serde_json::{Value, json};
use tierbar_core::{TierState, status::Status};
use tierbar_tests::serving::Data;

#[tokio::test]
async fn streamed_and_whole_answers_agree_and_name_the_model() {
    let data = Data::new(FAST);
    let host = data.serve().await;
    let whole = host.chat("fast", json!({"max_tokens": 12})).await;
    assert_eq!(whole.headers()["x-tierbar-tier"], "fast");
    assert_eq!(
        whole.headers()["x-tierbar-model"],
        "SmolLM2-135M-Instruct.Q4_1"
    );
    let whole: Value = whole.json().await.unwrap();
    assert_eq!(whole["usage"]["completion_tokens"], 12);
    assert!(whole["timings"]["predicted_per_second"].as_f64().unwrap() > 0.0);

    let stream = host
        .chat("auto", json!({"max_tokens": 12, "stream": true}))
        .await;
    assert_eq!(stream.headers()["x-tierbar-tier"], "fast");
    let events = Events::of(stream).rest().await;
    assert_eq!(events.last().unwrap(), "[DONE]");
    let chunks: Vec<Value> = events
        .iter()
        .filter_map(|event| serde_json::from_str(event).ok())
        .collect();
    let streamed: String = chunks
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str())
        .collect();
    assert_eq!(whole["choices"][0]["message"]["content"], streamed);

    let status = host.status().await;
    let timings = chunks
        .iter()
        .find_map(|chunk| chunk.get("timings"))
        .unwrap();
    let exact = timings["predicted_per_second"].as_f64().unwrap();
    assert!((status.speed.decode_tokens_per_second.unwrap() - exact).abs() < 1e-6);
    // The lease ends with the connection, shortly after its last event.
    let fast = host
        .tier_when("fast", |tier| tier.state == TierState::Ready)
        .await;
    assert_eq!(fast.context_tokens, 2048);
    assert!(
        status.budget.planned_bytes > 0 && status.budget.planned_bytes <= status.budget.total_bytes
    );
}

#[tokio::test]
async fn a_disconnect_ends_the_generation_and_frees_the_tier() {
    let data = Data::new(FAST);
    let host = data.serve().await;
    let endless = json!({"stream": true, "ignore_eos": true, "max_tokens": 1900});
    let mut events = Events::of(host.chat("fast", endless).await);
    events.words().await;
    assert_eq!(host.tier("fast").await.state, TierState::Busy);
    assert!(
        host.status().await.speed.decode_tokens_per_second.is_some()
            || !events.words().await.is_empty()
    );
    drop(events);
    host.tier_when("fast", |tier| tier.state == TierState::Ready)
        .await;
    // The worker is free as well: it answers at once, where the long answer would have gone on for a minute.
    let (status, _) = host
        .ask(
            Method::POST,
            "/v1/completions",
            Some(json!({"prompt": "One", "max_tokens": 1})),
        )
        .await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn the_event_stream_starts_with_a_snapshot_then_changes() {
    let data = Data::new(FAST);
    let host = data.serve().await;
    let mut events = Events::of(host.send(Method::GET, "/tierbar/v1/events", None).await);
    let snapshot: Status = serde_json::from_value(events.next_json().await).unwrap();
    assert_eq!(snapshot.url, host.url);
    assert_eq!(snapshot.tiers[0].state, TierState::Stopped);

    let (status, started) = host
        .ask(Method::POST, "/tierbar/v1/tiers/fast/start", None)
        .await;
    assert_eq!((status, &started["state"]), (200, &json!("ready")));
    loop {
        let change = events.next_json().await;
        assert!(
            change.get("version").is_none(),
            "an unchanged field was sent: {change}"
        );
        if let Some(tiers) = change.get("tiers")
            && tiers[0]["state"] == "ready"
            && tiers[0]["footprint_bytes"]
                .as_u64()
                .is_some_and(|bytes| bytes > 10 << 20)
        {
            assert_eq!(tiers[0]["pid"], started["pid"]);
            break;
        }
    }
}

#[tokio::test]
async fn stopping_a_tier_waits_for_its_answer_unless_forced() {
    let data = Data::new(FAST);
    let host = data.serve().await;
    let stop = "/tierbar/v1/tiers/fast/stop";
    let mut events = Events::of(
        host.chat(
            "fast",
            json!({"stream": true, "ignore_eos": true, "max_tokens": 40}),
        )
        .await,
    );
    events.words().await;
    let ((status, stopped), rest) = tokio::join!(host.ask(Method::POST, stop, None), events.rest());
    assert_eq!(
        (status, &stopped["state"], &stopped["pid"]),
        (200, &json!("stopped"), &Value::Null)
    );
    assert_eq!(rest.last().unwrap(), "[DONE]");

    let endless = json!({"stream": true, "ignore_eos": true, "max_tokens": 1900});
    let mut events = Events::of(host.chat("fast", endless).await);
    events.words().await;
    let (status, _) = host
        .ask(Method::POST, stop, Some(json!({"force": true})))
        .await;
    assert_eq!(status, 200);
    let last: Value = serde_json::from_str(events.rest().await.last().unwrap()).unwrap();
    assert_eq!(last["error"]["code"], "tier_stopped");
}

use crate::testing::{Bench, json, tier};
use axum::{body::Body, http::Request};
use serde_json::json;
use tierbar_core::TierState;
use tierbar_dialects::anthropic::{self};

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
    for name in ["fast", "fast:latest"] {
        let one = json(bench.get(&format!("/v1/models/{name}")).await).await;
        assert_eq!(one, list["data"][1], "{name}");
    }
    let anthropic = |path: &str| {
        let request = Request::get(path).header("host", "localhost");
        let request = request.header(anthropic::VERSION, "2023-06-01");
        bench.send(request.body(Body::empty()).unwrap())
    };
    let list = json(anthropic("/v1/models?limit=1&after_id=auto").await).await;
    assert_eq!(
        (&list["data"][0]["id"], &list["has_more"]),
        (&json!("fast"), &json!(true))
    );
    let one = json(anthropic("/v1/models/fast").await).await;
    assert_eq!(
        (&one["type"], &one["display_name"]),
        (&json!("model"), &json!("fast"))
    );
    let unknown = anthropic("/v1/models/claude-9").await;
    let id = unknown.headers()["request-id"].to_str().unwrap().to_owned();
    let unknown = json(unknown).await;
    assert_eq!(unknown["error"]["type"], "not_found_error", "{unknown}");
    assert_eq!(unknown["request_id"], id.as_str(), "{unknown}");
    assert_eq!(
        one["tierbar"],
        json!({"kind": "tier", "state": "ready", "model": "small", "input_modalities": []})
    );
    let unknown = bench.get("/v1/models/gpt-5").await;
    assert_eq!(unknown.status(), 404);
    assert_eq!(json(unknown).await["error"]["code"], "model_unknown");
}

#[tokio::test]
async fn a_name_with_a_slash_can_be_asked_for_written_out_or_not() {
    let bench = Bench::new("127.0.0.1:11435").await;
    let far = tier("far", Some("org/model x:free"), TierState::Ready);
    bench.tiers(|tiers| tiers.push(far));
    for path in ["org/model%20x:free", "org%2Fmodel%20x%3Afree"] {
        let one = bench.get(&format!("/v1/models/{path}")).await;
        assert_eq!(one.status(), 200, "{path}");
        assert_eq!(json(one).await["id"], "org/model x:free");
    }
    let unknown = bench.get("/v1/models/org/other").await;
    assert_eq!(unknown.status(), 404);
    assert_eq!(json(unknown).await["error"]["code"], "model_unknown");
}

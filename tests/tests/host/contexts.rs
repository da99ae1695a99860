//! Saved contexts, from a client to the disk and back.

use crate::FAST;
use reqwest::Method;
use serde_json::{Value, json};
use tierbar_core::TierState;
use tierbar_tests::serving::{Data, Serving};

const SAVE: &str = "/v1/context/save";
const LOAD: &str = "/v1/context/load";

fn messages() -> Value {
    let numbers: Vec<String> = (1..60).map(|number: u32| number.to_string()).collect();
    json!([
        {"role": "system", "content": format!("Know these: {}", numbers.join(", "))},
        {"role": "user", "content": "Which is the largest?"},
    ])
}

/// Returns the cached tokens of a request to the tier.
async fn cached(host: &Serving, tier: &str) -> Value {
    let answer = host
        .chat(tier, json!({"messages": messages(), "max_tokens": 4}))
        .await;
    let answer: Value = answer.json().await.unwrap();
    answer["timings"]["cache_n"].clone()
}

#[tokio::test]
async fn a_saved_context_survives_a_swap_and_a_restart() {
    let second = FAST.replace("[tiers.fast]", "[tiers.primary]");
    // An automatically saved conversation would be found first.
    let policy = "[policy]\nmax_loaded = 1\nkeep_conversations = false\n";
    let data = Data::shallow(&format!("{policy}{FAST}{second}"));
    let host = data.serve().await;
    let request = json!({"name": "talk", "model": "fast", "messages": messages()});
    let (status, saved) = host.ask(Method::POST, SAVE, Some(request)).await;
    assert_eq!(status, 200, "{saved}");
    let tokens = &saved["tokens"];
    assert!(tokens.as_u64().unwrap() > 100);

    // The other tier takes the memory, and can use the conversation as well, since it has the same model.
    assert_eq!(cached(&host, "primary").await, *tokens);
    host.tier_when("fast", |tier| tier.state == TierState::Stopped)
        .await;
    assert_eq!(cached(&host, "fast").await, *tokens);
    host.kill().await;

    let host = data.serve().await;
    let load = json!({"name": "talk"});
    let (status, loaded) = host.ask(Method::POST, LOAD, Some(load.clone())).await;
    assert_eq!(status, 200, "{loaded}");
    assert_eq!(loaded["timings"]["cache_n"], *tokens);
    assert_eq!(
        cached(&host, loaded["model"].as_str().unwrap()).await,
        *tokens
    );
    let (_, listed) = host.ask(Method::GET, "/v1/context", None).await;
    assert_eq!(listed["data"][0]["name"], "talk");
    let (status, _) = host
        .ask(Method::POST, "/v1/context/delete", Some(load.clone()))
        .await;
    assert_eq!(status, 200);
    let (status, gone) = host.ask(Method::POST, LOAD, Some(load)).await;
    assert_eq!(
        (status, &gone["error"]["code"]),
        (404, &json!("context_unknown"))
    );
}

#[tokio::test]
async fn a_context_loads_into_the_tier_of_its_kv_type() {
    let second = FAST.replace("[tiers.fast]", "[tiers.primary]") + "kv_cache = \"q8_0\"\n";
    let data = Data::shallow(&format!("[policy]\nmax_loaded = 2\n{FAST}{second}"));
    let host = data.serve().await;
    let request = json!({"name": "small cells", "model": "primary", "messages": messages()});
    let (status, saved) = host.ask(Method::POST, SAVE, Some(request)).await;
    assert_eq!(status, 200, "{saved}");
    // Both are loaded, and the other one comes first.
    assert_eq!(
        host.chat("fast", json!({"messages": messages(), "max_tokens": 1}))
            .await
            .status(),
        200
    );
    for load in [
        json!({"name": "small cells"}),
        json!({"name": "small cells", "model": saved["model"]}),
    ] {
        let (status, loaded) = host.ask(Method::POST, LOAD, Some(load)).await;
        assert_eq!(status, 200, "{loaded}");
    }
}

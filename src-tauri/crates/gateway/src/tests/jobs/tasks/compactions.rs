//! Conversations of the Responses API that are compacted.

use super::*;
use crate::testing::json;
use axum::extract::State;
use tierbar_core::{Code, Error};

const PATH: &str = "/v1/responses/compact";

fn user(text: &str) -> Value {
    json!({"type": "message", "role": "user", "content": text})
}

fn assistant(text: &str) -> Value {
    json!({"type": "message", "role": "assistant", "content": text})
}

fn conversation() -> Value {
    json!([
        user("We launch on Tuesday."),
        assistant("Noted."),
        user("Who is told first?"),
    ])
}

/// A worker that summarizes, and counts so many tokens.
async fn counting(tokens: u64) -> (Bench, Requests) {
    let bench = Bench::new("127.0.0.1:11435").await;
    let requests = Requests::default();
    let answer = async |State(seen): State<Requests>, Json(request): Json<Value>| {
        seen.0.lock().unwrap().push(request.clone());
        says_text(&request, "They launch on Tuesday.")
    };
    let count = move || std::future::ready(Json(json!({"tokens": tokens})));
    let routes = Router::new()
        .route("/v1/chat/completions", post(answer))
        .route(tierbar_inference::TOKENS, post(count))
        .with_state(requests.clone());
    bench.load(routes);
    (bench, requests)
}

#[tokio::test]
async fn a_compacted_conversation_goes_on_where_it_was() {
    let (bench, requests) = counting(20).await;
    let request = json!({"model": "fast", "input": conversation(), "prompt_cache_key": "job-7"});
    let response = bench.post(PATH, request.to_string()).await;
    assert_eq!(response.headers()["x-tierbar-tier"], "fast");
    let mut compacted = json(response).await;
    let read = data(&requests.all()[0]);
    assert!(
        read.starts_with("User: We launch on Tuesday.\n\nAssistant: Noted."),
        "{read}"
    );
    assert!(!read.contains("Who is told"), "{read}");
    assert_eq!(compacted["object"], "response.compaction");
    assert_eq!(
        compacted["tierbar"],
        json!({"left_out": [], "fallback": false})
    );
    assert_eq!(compacted["usage"]["output_tokens"], 10);
    let output = compacted["output"].take();
    let kinds: Vec<_> = output
        .as_array()
        .unwrap()
        .iter()
        .map(|item| &item["type"])
        .collect();
    assert_eq!(kinds, ["compaction", "message"]);

    let next = json!({"model": "fast", "instructions": "Be brief.", "input": output}).to_string();
    assert_eq!(bench.post("/v1/responses", next).await.status(), 200);
    let messages = requests.all().pop().unwrap()["messages"].take();
    assert_eq!(
        messages,
        json!([{"role": "system", "content": "Be brief."}, {"role": "user", "content":
            "Summary of our conversation so far:\n=====\nThey launch on Tuesday.\n=====\n\nWho is told first?"}])
    );
}

#[tokio::test]
async fn what_a_context_does_not_hold_is_refused() {
    // What is kept is too long.
    let (bench, _) = counting(5000).await;
    let request = json!({"model": "fast", "input": conversation(), "instructions": "Be brief."});
    let refused = bench.post(PATH, request.to_string()).await;
    assert_eq!(refused.status(), 400);
    let error = json(refused).await["error"].take();
    assert_eq!(error["code"], "context_length_exceeded");
    assert_eq!(
        (&error["prompt_tokens"], &error["context_tokens"]),
        (&json!(5000), &json!(4096))
    );
    // The context holds no text beside a summary.
    bench.tiers(|tiers| tiers[0].context_tokens = 256);
    let refused = bench.post(PATH, request.to_string()).await;
    assert_eq!(
        json(refused).await["error"]["code"],
        "context_length_exceeded"
    );
}

#[tokio::test]
async fn a_model_that_writes_no_summary_is_told() {
    let (bench, _) = scripted(|_, request| answer(request, "{")).await;
    let request = json!({"model": "fast", "input": conversation()});
    let compacted = json(bench.post(PATH, request.to_string()).await).await;
    assert_eq!(compacted["tierbar"]["fallback"], true, "{compacted}");
    let (bench, _) = scripted(|_, _| {
        let error = Error::new(Code::WorkerCrashed, "it ended");
        refuses(StatusCode::BAD_GATEWAY, error.openai_body())
    })
    .await;
    let failed = bench.post(PATH, request.to_string()).await;
    assert_eq!(json(failed).await["error"]["code"], "worker_crashed");
}

#[tokio::test]
async fn what_is_no_conversation_is_refused() {
    let (bench, requests) = counting(20).await;
    for (request, code, part) in [
        (json!({"input": "Hi"}), "bad_request", "model"),
        (json!({"model": "fast"}), "bad_request", "`input`"),
        (
            json!({"model": "gone", "input": "Hi"}),
            "model_unknown",
            "gone",
        ),
        (
            json!({"model": "fast", "previous_response_id": "resp_1"}),
            "previous_response_not_found",
            "resp_1",
        ),
        (
            json!({"model": "fast", "input": [user("Hi"), {"type": "compaction", "encrypted_content": "gAAA"}]}),
            "bad_request",
            "another server",
        ),
    ] {
        let refused = bench.post(PATH, request.to_string()).await;
        let error = json(refused).await["error"].take();
        assert_eq!(error["code"], code, "{request}");
        assert!(error["message"].as_str().unwrap().contains(part), "{error}");
    }
    assert!(requests.all().is_empty());
}

//! A inference whose tier is a server of Anthropic's dialect: one that is scripted here, and a inference of ours.

mod failing;
mod passing;
mod round;
use crate::testing::{Bench, json, text};
use axum::http::HeaderMap;
use axum::{
    Json, Router,
    body::Body,
    http::{Uri, header},
    response::{IntoResponse, Response},
    routing::post,
};
use serde_json::{Value, json};
use tierbar_core::{
    Code, Error,
    config::Dialect,
    lease::{Address, Endpoint, Foreign},
};
use tierbar_fetch::Remote;
use tierbar_inference::{
    self as inference,
    clouds::anthropic::{COUNT, MESSAGES},
};
use tokio::{net::TcpListener, sync::mpsc};

const CHAT: &str = r#"{"model": "fast", "messages": [{"role": "user", "content": "Hi"}]}"#;
const STREAMED: &str = concat!(
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"model\":\"claude-x\",\"usage\":{\"input_tokens\":5,\"output_tokens\":1}}}\n\n",
    "event: ping\ndata: {\"type\": \"ping\"}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Grüße\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":9}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);

/// What a server was asked.
struct ReceivedRequest {
    path: String,
    headers: HeaderMap,
    bytes: String,
    body: Value,
}

/// A inference whose tier is the server that `routes` are, asked for this model.
async fn bench(routes: Router, model: &str) -> (Bench, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move { axum::serve(listener, routes).await });
    let bench = Bench::new("127.0.0.1:11435").await;
    bench
        .loaded
        .send_replace(Some(Ok(Endpoint::Foreign(Foreign {
            at: Address::Url(format!("http://{server}/")),
            model: Some(model.to_owned()),
            dialect: Dialect::Anthropic,
        }))));
    (bench, server)
}

/// A server that gives this answer to every request, and reports the requests.
fn scripted(
    answer: impl Fn() -> Response + Clone + Send + Sync + 'static,
) -> (Router, mpsc::UnboundedReceiver<ReceivedRequest>) {
    let (report, asked) = mpsc::unbounded_channel();
    let answer = move |uri: Uri, headers: HeaderMap, body: String| {
        let asked = ReceivedRequest {
            path: uri.path().to_owned(),
            headers,
            body: serde_json::from_str(&body).unwrap(),
            bytes: body,
        };
        report.send(asked).unwrap();
        std::future::ready(answer())
    };
    (Router::new().fallback(post(answer)), asked)
}

fn message() -> Response {
    Json(json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x",
        "content": [{"type": "text", "text": "Yes."}], "stop_reason": "end_turn", "stop_sequence": null,
        "usage": {"input_tokens": 3, "output_tokens": 2, "cache_read_input_tokens": 4},
    }))
    .into_response()
}

fn events(events: impl Into<Body>) -> Response {
    ([(header::CONTENT_TYPE, "text/event-stream")], events.into()).into_response()
}

/// What Anthropic's servers insist on.
fn assert_taken(request: &Value) {
    assert!(request["max_tokens"].as_u64() > Some(0), "{request}");
    assert!(request["model"].is_string(), "{request}");
    for (at, message) in request["messages"].as_array().unwrap().iter().enumerate() {
        let role = if at % 2 == 0 { "user" } else { "assistant" };
        assert_eq!(message["role"], role, "{request}");
        assert!(
            !message["content"].as_array().unwrap().is_empty(),
            "{request}"
        );
    }
}

fn streaming() -> String {
    CHAT.replacen(
        '{',
        r#"{"stream": true, "stream_options": {"include_usage": true}, "#,
        1,
    )
}

#[tokio::test]
async fn a_chat_is_a_message_with_its_key_and_the_answer_a_completion() {
    let (routes, mut asked) = scripted(message);
    let (mut bench, server) = bench(routes, "claude-haiku-4-5").await;
    let path = format!("/tierbar/v1/secrets/{server}");
    let key = bench.ask("PUT", &path, r#"{"value": "sk-ant-1"}"#).await;
    assert_eq!(key.status(), 204);
    let answer = bench.post(inference::CHAT, CHAT).await;
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["x-tierbar-tier"], "fast");
    let answer = json(answer).await;
    assert_eq!(answer["object"], "chat.completion");
    assert_eq!(answer["choices"][0]["message"]["content"], "Yes.");
    assert_eq!(answer["usage"]["prompt_tokens"], 7);
    let asked = asked.recv().await.unwrap();
    assert_eq!(asked.path, "/v1/messages");
    assert_eq!(asked.headers["x-api-key"], "sk-ant-1");
    assert_eq!(asked.headers["anthropic-version"], "2023-06-01");
    assert_eq!(asked.headers["content-type"], "application/json");
    assert!(!asked.headers.contains_key("authorization"));
    assert_taken(&asked.body);
    assert_eq!(asked.body["model"], "claude-haiku-4-5");
    bench.released().await;
}

#[tokio::test]
async fn a_stream_becomes_chunks_however_it_is_split() {
    for size in [1, 7, STREAMED.len()] {
        let pieces = move || {
            let pieces = STREAMED.as_bytes().chunks(size);
            let pieces = pieces.map(Ok::<_, std::io::Error>);
            events(Body::from_stream(futures_util::stream::iter(pieces)))
        };
        let (routes, mut asked) = scripted(pieces);
        let (mut bench, _) = bench(routes, "claude-haiku-4-5").await;
        let reply = text(bench.post(inference::CHAT, streaming()).await).await;
        assert!(reply.contains(": ping\n\n"), "{reply}");
        assert!(reply.contains(r#""delta":{"content":"Grüße"}"#), "{reply}");
        assert!(reply.contains(r#""finish_reason":"stop""#), "{reply}");
        assert!(reply.contains(r#""completion_tokens":9"#), "{reply}");
        assert!(reply.ends_with("data: [DONE]\n\n"), "{reply}");
        let asked = asked.recv().await.unwrap();
        assert_eq!(asked.body["stream"], true);
        assert_taken(&asked.body);
        bench.released().await;
    }
}

#[tokio::test]
async fn a_conversation_with_tools_alternates_roles() {
    let (routes, mut asked) = scripted(message);
    let (bench, _) = bench(routes, "claude-opus-4-6").await;
    let call =
        json!({"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}});
    let chat = json!({
        "model": "fast", "temperature": 2, "repeat_penalty": 1.1,
        "tools": [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "assistant", "content": "Hello!"},
            {"role": "user", "content": "Look."},
            {"role": "assistant", "content": null, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": "a hat"},
            {"role": "user", "content": "Well?"},
        ],
    });
    let answer = bench.post(inference::CHAT, chat.to_string()).await;
    assert_eq!(answer.status(), 200);
    let body = asked.recv().await.unwrap().body;
    assert_taken(&body);
    assert_eq!(body["system"], "Be brief.");
    assert_eq!(body["temperature"], 1.0);
    assert!(body.get("repeat_penalty").is_none());
    let messages = body["messages"].as_array().unwrap().iter();
    let blocks = messages.flat_map(|message| message["content"].as_array().unwrap());
    let kinds: Vec<_> = blocks
        .map(|block| block["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        ["text", "text", "text", "tool_use", "tool_result", "text"]
    );
}

#[tokio::test]
async fn tokens_are_counted_by_the_cloud() {
    let count = || Json(json!({"input_tokens": 14})).into_response();
    let (routes, mut asked) = scripted(count);
    let (bench, _) = bench(routes, "claude-haiku-4-5").await;
    for (path, request) in [
        (
            COUNT,
            json!({"model": "fast", "messages": [{"role": "user", "content": "Hi"}]}),
        ),
        (
            "/v1/responses/input_tokens",
            json!({"model": "fast", "max_output_tokens": 5, "input": "Hi"}),
        ),
    ] {
        let reply = json(bench.post(path, request.to_string()).await).await;
        assert_eq!(reply["input_tokens"], 14);
        let asked = asked.recv().await.unwrap();
        assert_eq!(asked.path, COUNT);
        assert!(asked.body.get("max_tokens").is_none());
        assert_eq!(asked.body["messages"][0]["role"], "user");
    }
}

#[test]
fn our_own_error_is_restored() {
    let error = Error::new(Code::ContextExceeded, "too long").detail("prompt_tokens", 9);
    let reply = tierbar_inference::clouds::anthropic::openai_failure(
        (tierbar_dialects::anthropic::ERRORS.body)(&error, None)
            .to_string()
            .as_bytes(),
    );
    assert_eq!(
        tierbar_inference::wire::error(
            axum::http::StatusCode::BAD_GATEWAY,
            reply.to_string().as_bytes()
        ),
        error
    );
}

use crate::testing::{Bench, json, text};
use axum::Json;
use axum::{Router, http::header, response::IntoResponse, routing::post};
use serde_json::{Value, json};
use tierbar_core::{Code, Error};
use tierbar_http::error::Failure;
use tierbar_inference::{
    CHAT,
    clouds::anthropic::{COUNT, MESSAGES},
    files::OMITTED,
};

const ASK: &str =
    r#"{"model": "fast", "max_tokens": 5, "messages": [{"role": "user", "content": "Hi"}]}"#;

#[tokio::test]
async fn a_message_is_a_chat_and_its_answer_a_message() {
    let bench = Bench::new("127.0.0.1:11435").await;
    let answer = async |body: String| {
        let chat: Value = serde_json::from_str(&body).unwrap();
        let said = format!(
            "{} of {}",
            chat["messages"][0]["content"], chat["max_tokens"]
        );
        Json(json!({"choices": [{"message": {"content": said}, "finish_reason": "stop"}]}))
    };
    bench.load(Router::new().route(CHAT, post(answer)));
    let reply = bench.post(MESSAGES, ASK).await;
    assert_eq!(reply.headers()["x-tierbar-tier"], "fast");
    let reply = json(reply).await;
    assert_eq!(
        reply["content"],
        json!([{"type": "text", "text": "\"Hi\" of 5"}])
    );
}

#[tokio::test]
async fn a_pdf_is_a_line_for_a_model_of_this_machine() {
    let bench = Bench::new("127.0.0.1:11435").await;
    let answer = async |body: String| {
        let chat: Value = serde_json::from_str(&body).unwrap();
        let content = chat["messages"][0]["content"].clone();
        Json(json!({"choices": [{"message": {"content": content}, "finish_reason": "stop"}]}))
    };
    bench.load(Router::new().route(CHAT, post(answer)));
    let source = json!({"type": "base64", "media_type": "application/pdf", "data": "AAAA"});
    let content = json!([{"type": "document", "source": source}]);
    let messages = json!([{"role": "user", "content": content}]);
    let ask = json!({"model": "fast", "max_tokens": 5, "messages": messages}).to_string();
    let reply = json(bench.post(MESSAGES, ask).await).await;
    assert_eq!(reply["content"][0]["text"], OMITTED);
    assert_eq!(
        reply["tierbar"]["left_out"],
        json!(["messages[0].content[0]: document"])
    );
}

#[tokio::test]
async fn a_stream_becomes_events() {
    let bench = Bench::new("127.0.0.1:11435").await;
    let answer = async || {
        let events = "data: {\"choices\":[{\"delta\":{\"content\":\"Yes\"}}]}\n\ndata: [DONE]\n\n";
        ([(header::CONTENT_TYPE, "text/event-stream")], events)
    };
    bench.load(Router::new().route(CHAT, post(answer)));
    let ask = ASK.replacen('{', r#"{"stream": true, "#, 1);
    let reply = text(bench.post(MESSAGES, ask).await).await;
    assert!(reply.starts_with("event: message_start\n"), "{reply}");
    assert!(
        reply.ends_with("data: {\"type\":\"message_stop\"}\n\n"),
        "{reply}"
    );
}

#[tokio::test]
async fn every_refusal_has_anthropics_form() {
    let bench = Bench::new("127.0.0.1:11435").await;
    let refusal = async || {
        let error = Error::new(Code::ContextExceeded, "too long").detail("prompt_tokens", 9);
        Failure(error).into_response()
    };
    bench.load(Router::new().route(CHAT, post(refusal)));
    for (ask, status, kind, code) in [
        (ASK, 400, "invalid_request_error", "context_length_exceeded"),
        ("{", 400, "invalid_request_error", "bad_request"),
        (
            r#"{"model": "gpt-5", "messages": []}"#,
            404,
            "not_found_error",
            "model_unknown",
        ),
    ] {
        let refused = bench.post(MESSAGES, ask).await;
        assert_eq!(refused.status(), status);
        let refused = json(refused).await;
        assert_eq!(refused["type"], "error");
        assert_eq!(refused["error"]["type"], kind);
        assert_eq!(refused["error"]["code"], code);
    }
    let method = json(bench.get(MESSAGES).await).await;
    assert_eq!(method["error"]["type"], "invalid_request_error");
}

#[tokio::test]
async fn tokens_are_counted_by_the_worker() {
    let bench = Bench::new("127.0.0.1:11435").await;
    let counted = async |body: String| {
        let chat: Value = serde_json::from_str(&body).unwrap();
        assert!(chat.get("stream").is_none() && chat.get("stream_options").is_none());
        Json(json!({"tokens": 3}))
    };
    bench.load(Router::new().route("/v1/chat/tokens", post(counted)));
    let ask = ASK.replacen('{', r#"{"stream": true, "#, 1);
    let reply = json(bench.post(COUNT, ask).await).await;
    assert_eq!(reply, json!({"input_tokens": 3}));
}

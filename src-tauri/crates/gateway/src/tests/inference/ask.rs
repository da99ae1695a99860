use crate::testing::{Bench, text};
use axum::http::StatusCode;
use axum::{
    Json, Router,
    body::{Body, Bytes},
    http::header,
    response::{IntoResponse, Response},
    routing::post,
};
use futures_util::{StreamExt, stream};
use serde_json::Value;
use serde_json::{Map, json};
use std::convert::Infallible;
use std::sync::Arc;
use tierbar_core::{Code, Error};
use tierbar_inference::{
    CHAT, Inference,
    ask::AnswerStream,
    caller::Caller,
    events::{AnswerFailure, Event, Usage},
    request::Request,
};

const STREAM: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"Hm.\"}}]}\n\n\
    data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Par\"}}]}\n\n\
    data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"is\"},\"finish_reason\":\"stop\"}]}\n\n\
    data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3},\"timings\":{\"prompt_ms\":500.0,\"predicted_ms\":250.0}}\n\n\
    data: [DONE]\n\n";

async fn bench() -> Bench {
    Bench::new("127.0.0.1:11435").await
}

fn inference(bench: &Bench) -> Arc<Inference> {
    Arc::clone(&bench.inference)
}

fn chat(more: Value) -> Map<String, Value> {
    let mut chat = json!({"model": "fast", "messages": [{"role": "user", "content": "?"}]});
    let fields = chat.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    fields.clone()
}

async fn ask(bench: &Bench, request: Request) -> Result<AnswerStream, AnswerFailure> {
    inference(bench).ask(request, Caller::default()).await
}

fn streams(body: impl Into<Body>) -> Response {
    ([(header::CONTENT_TYPE, "text/event-stream")], body.into()).into_response()
}

fn worker(answer: impl Fn() -> Response + Clone + Send + Sync + 'static) -> Router {
    Router::new().route(CHAT, post(move || std::future::ready(answer())))
}

#[tokio::test]
async fn a_stream_becomes_events() {
    let mut bench = bench().await;
    bench.load(worker(|| streams(STREAM)));
    let request = Request::streamed_chat(chat(json!({}))).unwrap();
    let events: Vec<_> = ask(&bench, request).await.unwrap().collect().await;
    let Event::Started(source) = &events[0] else {
        panic!("{events:?}");
    };
    assert_eq!(source.tier.as_ref().unwrap().as_str(), "fast");
    assert_eq!(source.model.as_ref().unwrap().as_str(), "small");
    let usage = Usage {
        prompt_tokens: 7,
        completion_tokens: 3,
        prefill_seconds: Some(0.5),
        decode_seconds: Some(0.25),
        ..Usage::default()
    };
    assert_eq!(
        events[1..],
        [
            Event::Reasoning("Hm.".to_owned()),
            Event::Text("Par".to_owned()),
            Event::Text("is".to_owned()),
            Event::Usage(usage),
            Event::Finished {
                reason: "stop".to_owned(),
                stop: None,
            },
        ]
    );
    bench.released().await;
}

#[tokio::test]
async fn a_whole_answer_is_collected() {
    let bench = bench().await;
    let answer = json!({
        "choices": [{"message": {"content": "Paris"}, "finish_reason": "length"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 1},
    });
    bench.load(worker(move || Json(answer.clone()).into_response()));
    let request = Request::chat(chat(json!({}))).unwrap();
    let whole = ask(&bench, request).await.unwrap().gather().await.unwrap();
    assert_eq!((&*whole.text, &*whole.reason), ("Paris", "length"));
    assert_eq!(whole.usage.prompt_tokens, 7);
    assert_eq!(whole.source.tier.unwrap().as_str(), "fast");
}

#[tokio::test]
async fn the_pieces_of_a_tool_call_have_its_index() {
    let bench = bench().await;
    let piece = |call: Value| format!("data: {}\n\n", json!({"choices": [{"delta": call}]}));
    let begins = json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "look", "arguments": "{\"at\":"}}]});
    let ends = json!({"tool_calls": [{"index": 0, "function": {"arguments": "1}"}}]});
    let stream = piece(begins) + &piece(ends) + "data: [DONE]\n\n";
    bench.load(worker(move || streams(stream.clone())));
    let request = Request::streamed_chat(chat(json!({}))).unwrap();
    let events: Vec<_> = ask(&bench, request).await.unwrap().collect().await;
    let calls: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::ToolCall(part) => Some((part.index, part.name.as_deref(), &*part.arguments)),
            _ => None,
        })
        .collect();
    assert_eq!(calls, [(0, Some("look"), "{\"at\":"), (0, None, "1}")]);
}

#[tokio::test]
async fn an_early_failure_is_an_error_and_a_late_one_an_event() {
    let bench = bench().await;
    let request = Request::chat(chat(json!({"model": "gpt-5"}))).unwrap();
    let failed = ask(&bench, request).await.unwrap_err();
    assert_eq!(failed.error.code, Code::ModelUnknown);
    assert_eq!((failed.status, failed.may_wait), (None, false));

    let refusal = Error::new(Code::ContextExceeded, "too long");
    let body = refusal.openai_body();
    bench.load(worker(move || {
        (StatusCode::BAD_REQUEST, Json(body.clone())).into_response()
    }));
    let request = Request::streamed_chat(chat(json!({}))).unwrap();
    let failed = ask(&bench, request.clone()).await.unwrap_err();
    assert_eq!((failed.error, failed.status), (refusal, None));
}

#[tokio::test]
async fn an_error_within_a_stream_ends_it() {
    let bench = bench().await;
    let error = Error::new(Code::WorkerCrashed, "out of memory").openai_body();
    let stream =
        format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"P\"}}}}]}}\n\ndata: {error}\n\n");
    bench.load(worker(move || streams(stream.clone())));
    let request = Request::streamed_chat(chat(json!({}))).unwrap();
    let events: Vec<_> = ask(&bench, request).await.unwrap().collect().await;
    assert_eq!(events[1], Event::Text("P".to_owned()));
    let [Event::Failed(failed)] = &events[2..] else {
        panic!("{events:?}");
    };
    assert_eq!(failed.error.code, Code::WorkerCrashed);
}

#[tokio::test]
async fn a_dropped_answer_releases_its_lease() {
    let mut bench = bench().await;
    bench.load(worker(|| {
        let first = "data: {\"choices\":[{\"delta\":{\"content\":\"P\"}}]}\n\n";
        let first = stream::iter([Ok::<_, Infallible>(Bytes::from(first))]);
        streams(Body::from_stream(first.chain(stream::pending())))
    }));
    let request = Request::streamed_chat(chat(json!({}))).unwrap();
    let mut answer = ask(&bench, request).await.unwrap();
    assert!(matches!(answer.next().await, Some(Event::Started(_))));
    assert_eq!(answer.next().await, Some(Event::Text("P".to_owned())));
    drop(answer);
    bench.released().await;
}

#[tokio::test]
async fn http_and_ask_have_the_same_answer() {
    let bench = bench().await;
    bench.load(worker(|| streams(STREAM)));
    let body = Value::Object(chat(json!({"stream": true}))).to_string();
    assert_eq!(text(bench.post(CHAT, body).await).await, STREAM);
}

mod endpoints;
use crate::testing::{Bench, json, text};
use axum::{
    Router,
    body::{Body, BodyDataStream, Bytes},
    http::{StatusCode, header},
    response::{Html, IntoResponse, Response},
    routing::post,
};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tierbar_core::{Code, Error};
use tierbar_inference::error;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_stream::wrappers::UnboundedReceiverStream;

const STREAM: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Paris\"}}]}\n\n\
    data: {\"choices\":[{\"delta\":{}}],\"timings\":{\"prompt_per_second\":300.0,\"predicted_per_second\":40.0}}\n\n\
    data: [DONE]\n\n";
const ASKS_STREAM: &str = r#"{"model":"fast","stream":true,"messages":[]}"#;

async fn bench() -> Bench {
    Bench::new("127.0.0.1:11435").await
}

fn event_stream(body: Body) -> Response {
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

fn worker(answer: impl Fn() -> Response + Clone + Send + Sync + 'static) -> Router {
    Router::new().route(CHAT, post(move || std::future::ready(answer())))
}

const CHAT: &str = "/v1/chat/completions";

/// A worker that streams what it is sent. An `Err` breaks the connection, as a killed process would. `gone`
/// resolves when the client's connection has been closed.
fn scripted() -> (
    Router,
    mpsc::UnboundedSender<Result<Bytes, std::io::Error>>,
    oneshot::Receiver<()>,
) {
    let (script, lines) = mpsc::unbounded_channel();
    let (leaving, gone) = oneshot::channel::<()>();
    let held = Arc::new(std::sync::Mutex::new(Some((lines, leaving))));
    let answer = move || {
        let (lines, leaving) = held.lock().unwrap().take().unwrap();
        let lines = UnboundedReceiverStream::new(lines).map(move |line| {
            let _until_dropped = &leaving;
            line
        });
        event_stream(Body::from_stream(lines))
    };
    (worker(answer), script, gone)
}

#[tokio::test]
async fn a_stream_passes_unchanged_with_its_tier() {
    let mut bench = bench().await;
    bench.load(worker(|| event_stream(Body::from(STREAM))));
    let response = bench.post(CHAT, ASKS_STREAM).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert_eq!(response.headers()["x-tierbar-tier"], "fast");
    assert_eq!(response.headers()["x-tierbar-model"], "small");
    assert_eq!(text(response).await, STREAM);
    bench.released().await;
    assert_eq!(bench.speed.speed().decode_tokens_per_second, Some(40.0));
}

#[tokio::test]
async fn an_event_is_relayed_before_the_next_exists() {
    let bench = bench().await;
    let (routes, script, _gone) = scripted();
    bench.load(routes);
    let mut body = bench
        .post(CHAT, ASKS_STREAM)
        .await
        .into_body()
        .into_data_stream();
    for word in ["data: {\"choices\":[]}\n\n", "data: {\"choices\":[]}\n\n"] {
        script.send(Ok(Bytes::from(word))).unwrap();
        assert_eq!(body.next().await.unwrap().unwrap(), word);
    }
}

#[tokio::test]
async fn a_disconnect_closes_the_workers_connection() {
    let mut bench = bench().await;
    let (routes, script, gone) = scripted();
    bench.load(routes);
    let mut body = bench
        .post(CHAT, ASKS_STREAM)
        .await
        .into_body()
        .into_data_stream();
    script
        .send(Ok(Bytes::from("data: {\"choices\":[]}\n\n")))
        .unwrap();
    assert_eq!(
        body.next().await.unwrap().unwrap(),
        "data: {\"choices\":[]}\n\n"
    );
    assert_eq!(*bench.leases.borrow(), 1);
    drop(body);
    gone.await.unwrap_err();
    bench.released().await;
}

#[tokio::test]
async fn a_worker_that_dies_in_an_answer_ends_with_an_error_event() {
    let mut bench = bench().await;
    let (routes, script, _gone) = scripted();
    bench.load(routes);
    let response = bench.post(CHAT, ASKS_STREAM).await;
    let mut body = response.into_body().into_data_stream();
    script
        .send(Ok(Bytes::from("data: {\"choices\":[]}\n\ndata: {\"choi")))
        .unwrap();
    let first = body.next().await.unwrap().unwrap();
    assert_eq!(first, "data: {\"choices\":[]}\n\n");

    let died = Error::new(Code::WorkerCrashed, "the worker was killed (signal 9)");
    bench.ended.send_replace(Some(died.clone()));
    script.send(Err(std::io::Error::other("killed"))).unwrap();
    let last = body.next().await.unwrap().unwrap();
    assert_eq!(last, format!("\n{}", error::last_event(&died)));
    assert!(body.next().await.is_none());
    bench.released().await;
}

#[tokio::test]
async fn what_waits_in_a_lost_worker_goes_to_the_next() {
    // The request may be why a worker crashed.
    for (cause, calls, status) in [("killed", 2, 200), ("hung", 2, 200), ("bad_file", 1, 502)] {
        let mut bench = bench().await;
        let called = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&called);
        bench.load(worker(move || {
            // The end of the handler breaks the connection, as the end of the process would.
            assert!(counted.fetch_add(1, Ordering::Relaxed) > 0, "lost");
            event_stream(Body::from(STREAM))
        }));
        let lost = Error::new(Code::WorkerCrashed, "it ended").detail("cause", cause);
        bench.ended.send_replace(Some(lost));
        let response = bench.post(CHAT, ASKS_STREAM).await;
        assert_eq!(response.status(), status, "{cause}");
        assert_eq!(called.load(Ordering::Relaxed), calls, "{cause}");
        if status == 200 {
            assert_eq!(text(response).await, STREAM);
        }
        bench.released().await;
    }
}

#[tokio::test]
async fn a_truncated_stream_ends_with_an_error() {
    let bench = bench().await;
    bench.load(worker(|| {
        event_stream(Body::from("data: {\"choices\":[]}\n\n"))
    }));
    bench
        .ended
        .send_replace(Some(Error::new(Code::TierStopped, "the tier was stopped")));
    let reply = text(bench.post(CHAT, ASKS_STREAM).await).await;
    assert!(
        reply.ends_with("}}\n\n") && reply.contains("tier_stopped"),
        "{reply}"
    );
}

#[tokio::test]
async fn answers_and_refusals_keep_their_status() {
    let mut bench = bench().await;
    let refusal = json!({"error": {"message": "m", "code": "context_length_exceeded", "prompt_tokens": 5000}});
    let body = refusal.to_string();
    bench.load(worker(move || {
        (
            StatusCode::BAD_REQUEST,
            [(header::CONTENT_TYPE, "application/json")],
            body.clone(),
        )
            .into_response()
    }));
    for asks in [r#"{"model":"fast"}"#, ASKS_STREAM] {
        let response = bench.post(CHAT, asks).await;
        assert_eq!(response.status(), 400);
        assert_eq!(response.headers()["content-type"], "application/json");
        assert_eq!(response.headers()["x-tierbar-tier"], "fast");
        assert_eq!(json(response).await, refusal);
    }
    bench.released().await;
}

#[tokio::test]
async fn an_unreachable_worker_is_a_502_with_the_reason() {
    let bench = bench().await;
    bench
        .loaded
        .send_replace(Some(Ok(tierbar_core::lease::Endpoint::Unix(
            "/nowhere/worker.sock".into(),
        ))));
    bench
        .ended
        .send_replace(Some(Error::new(Code::WorkerCrashed, "the worker ended")));
    for asks in ["{}", ASKS_STREAM] {
        let response = bench.post(CHAT, asks).await;
        assert_eq!(response.status(), 502);
        assert_eq!(json(response).await["error"]["message"], "the worker ended");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_starts_while_the_tier_loads() {
    let bench = bench().await;
    let response = bench.post(CHAT, ASKS_STREAM).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["x-tierbar-tier"], "fast");
    assert_eq!(response.headers()["x-tierbar-model"], "small");
    let mut body = response.into_body().into_data_stream();
    for _ in 0..2 {
        assert_eq!(body.next().await.unwrap().unwrap(), ": loading\n\n");
    }
    bench.load(worker(|| event_stream(Body::from(STREAM))));
    let mut rest = Vec::new();
    while let Some(bytes) = body.next().await {
        rest.extend_from_slice(&bytes.unwrap());
    }
    assert_eq!(
        String::from_utf8(rest)
            .unwrap()
            .replace(": loading\n\n", "")
            .replace(": waiting\n\n", ""),
        STREAM
    );
}

/// The stream of an answer whose tier is loading.
async fn loading(bench: &Bench) -> BodyDataStream {
    let asked = bench.post(CHAT, ASKS_STREAM).await;
    let mut body = asked.into_body().into_data_stream();
    assert_eq!(body.next().await.unwrap().unwrap(), ": loading\n\n");
    body
}

#[tokio::test(start_paused = true)]
async fn a_late_load_failure_is_an_event_and_an_early_one_a_status() {
    let bench = bench().await;
    let mut body = loading(&bench).await;
    bench
        .loaded
        .send_replace(Some(Err(Error::new(Code::TierFailed, "it did not load"))));
    let last = String::from_utf8(body.next().await.unwrap().unwrap().to_vec()).unwrap();
    assert!(
        last.contains("data: {") && last.contains("tier_failed"),
        "{last}"
    );
    assert!(body.next().await.is_none());

    let response = bench.post(CHAT, ASKS_STREAM).await;
    assert_eq!(response.status(), 503);
    assert_eq!(json(response).await["error"]["code"], "tier_failed");
}

#[tokio::test(start_paused = true)]
async fn a_late_refusal_is_an_error_event() {
    let bench = bench().await;
    let mut body = loading(&bench).await;
    let page = || (StatusCode::BAD_REQUEST, Html("<html>\n</html>")).into_response();
    bench.load(worker(page));
    let mut reply = Vec::new();
    while let Some(bytes) = body.next().await {
        reply.extend_from_slice(&bytes.unwrap());
    }
    let reply = String::from_utf8(reply).unwrap();
    let last = reply.trim_end().lines().next_back().unwrap();
    let last: Value = serde_json::from_str(last.strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!(last["error"]["code"], "bad_request");
}

#[tokio::test(start_paused = true)]
async fn keep_alives_come_only_between_events() {
    let bench = bench().await;
    let (routes, script, _gone) = scripted();
    bench.load(routes);
    let response = bench.post(CHAT, ASKS_STREAM).await;
    let mut body = response.into_body().into_data_stream();
    let mut passes = async |piece: &'static str| {
        script.send(Ok(Bytes::from(piece))).unwrap();
        let mut next = body.next().await.unwrap().unwrap();
        while next == ": waiting\n\n" && piece != next {
            next = body.next().await.unwrap().unwrap();
        }
        assert_eq!(next, piece);
        timeout(Duration::from_secs(60), body.next()).await
    };
    let quiet = passes("data: {\"choices\":[]}\n\n").await.unwrap();
    assert_eq!(quiet.unwrap().unwrap(), ": waiting\n\n");
    assert!(passes("event: message\n").await.is_err());
    // The event is whole, and the line that ends it may come with the next one.
    let quiet = passes("data: {\"choices\":[]}\n").await.unwrap();
    assert_eq!(quiet.unwrap().unwrap(), "\n: waiting\n\n");
    let quiet = passes("\n").await.unwrap();
    assert_eq!(quiet.unwrap().unwrap(), ": waiting\n\n");
}

#[tokio::test]
async fn a_disconnect_while_waiting_takes_no_lease() {
    let bench = bench().await;
    let asking = bench.post(CHAT, r#"{"stream":false}"#);
    assert!(timeout(Duration::ZERO, asking).await.is_err());
    bench.load(worker(|| event_stream(Body::from(STREAM))));
    assert_eq!(*bench.leases.borrow(), 0);
}

#[tokio::test]
async fn invalid_bodies_are_refused_with_the_place() {
    let bench = bench().await;
    for (body, part) in [
        (
            "{\"model\": \"fast\",\n \"stream\": tru}",
            "line 2 column 15",
        ),
        ("[]", "not a JSON object"),
        ("", "empty"),
        ("hello", "line 1 column 1"),
        (r#"{"model": 7}"#, "expected a string"),
        (r#"{"stream": "yes"}"#, "expected a boolean"),
    ] {
        let response = bench.post(CHAT, body).await;
        assert_eq!(response.status(), 400, "{body}");
        let error = json(response).await;
        assert_eq!(error["error"]["code"], "bad_request");
        assert_eq!(error["error"]["type"], "invalid_request_error");
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.contains(part), "{body}: {message}");
    }
    let unknown = bench.post(CHAT, r#"{"model":"gpt-5"}"#).await;
    assert_eq!(unknown.status(), 404);
    assert_eq!(json(unknown).await["error"]["code"], "model_unknown");
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_read_and_refused() {
    let bench = bench().await;
    let piece = Bytes::from(vec![b' '; 1 << 20]);
    let (sent, counted) = (Arc::new(std::sync::atomic::AtomicUsize::new(0)), 40);
    let count = Arc::clone(&sent);
    let pieces = stream::iter(0..counted).map(move |_| {
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok::<_, Infallible>(piece.clone())
    });
    let response = bench.post(CHAT, Body::from_stream(pieces)).await;
    assert_eq!(response.status(), 413);
    assert_eq!(json(response).await["error"]["limit_bytes"], 30 << 20);
    assert_eq!(sent.load(std::sync::atomic::Ordering::Relaxed), counted);
}

//! OpenAI's responses to and from an endpoint that has them, and one that has not.

use crate::testing::{Bench, json, text, tier};
use axum::{
    Router,
    body::Body,
    http::{HeaderMap, Request, Uri, header},
    response::{IntoResponse, Response},
    routing::post,
};
use futures_util::stream;
use serde_json::{Value, json};
use std::convert::Infallible;
use tierbar_core::{TierState, status::EngineKind};
use tokio::sync::mpsc;

const REQUEST: &str = r#"{ "model" : "cloud", "input":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"c2VjcmV0"},
 {"role":"user","content":"Gr\u00fc\u00dfe"}], "previous_response_id":"resp_0", "store":true,"include":["reasoning.encrypted_content"],
 "tools":[{"type":"web_search"},{"type":"custom","name":"code"}], "service_tier":"priority","of_next_year":1e2}"#;

const EVENTS: &str = concat!(
    "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"resp_1\",\"status\":\"in_progress\",\"output\":[]}}\n\n",
    "event: response.of_next_year\ndata: {\"type\":\"response.of_next_year\",\"sequence_number\":1}\n\n",
    "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":2,\"delta\":\"Grüße\"}\n\n",
    "event: response.completed\ndata: {\"type\":\"response.completed\",\"sequence_number\":3,\"response\":{\"id\":\"resp_1\",\"status\":\"completed\",\"output\":[],\"usage\":{\"input_tokens\":30,\"input_tokens_details\":{\"cached_tokens\":20},\"output_tokens\":4,\"total_tokens\":34}}}\n\n",
);

const WHOLE: &str = r#"{"id":"resp_1", "object":"response","status":"completed","error":null,"output":[],"of_next_year":1e2,"usage":{"input_tokens":30,"output_tokens":4,"total_tokens":34}}"#;

type ReceivedRequests = mpsc::UnboundedReceiver<(String, HeaderMap, String)>;

/// A Tierbar with the tier `cloud`, an endpoint that answers by path and body.
async fn cloud(
    answer: impl Fn(&str, &str) -> Response + Clone + Send + Sync + 'static,
) -> (Bench, ReceivedRequests) {
    let (report, asked) = mpsc::unbounded_channel();
    let answer = move |uri: Uri, headers: HeaderMap, body: String| {
        let reply = answer(uri.path(), &body);
        report.send((uri.path().to_owned(), headers, body)).unwrap();
        std::future::ready(reply)
    };
    let bench = Bench::new("127.0.0.1:11435").await;
    bench
        .endpoint("cloud", Router::new().fallback(post(answer)))
        .await;
    let mut cloud = tier("cloud", Some("m"), TierState::Ready);
    cloud.engine = EngineKind::Endpoint;
    bench.tiers(|tiers| tiers.push(cloud));
    (bench, asked)
}

fn without_model(request: &str) -> String {
    request.replacen(r#" "model" : "cloud","#, "", 1)
}

fn streamed() -> String {
    REQUEST.replacen('{', r#"{"stream":true,"#, 1)
}

fn responds(_: &str, body: &str) -> Response {
    if !body.contains("\"stream\":true") {
        return ([(header::CONTENT_TYPE, "application/json")], WHOLE).into_response();
    }
    let pieces = EVENTS.as_bytes().chunks(7).map(Ok::<_, Infallible>);
    let body = Body::from_stream(stream::iter(pieces));
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

#[tokio::test]
async fn a_response_passes_to_an_endpoint_that_has_it() {
    let (mut bench, mut asked) = cloud(responds).await;
    for (request, answer) in [(REQUEST.to_owned(), WHOLE), (streamed(), EVENTS)] {
        let sent = Request::post("/v1/responses")
            .header(header::HOST, "localhost")
            .header("openai-beta", "of-next-year=v1")
            .body(Body::from(request.clone()));
        let reply = bench.send(sent.unwrap()).await;
        assert_eq!(reply.status(), 200);
        assert_eq!(text(reply).await, answer);
        let (path, headers, body) = asked.recv().await.unwrap();
        assert_eq!(path, "/v1/responses");
        assert_eq!(headers["openai-beta"], "of-next-year=v1");
        let compact = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert_eq!(compact(&body), compact(&without_model(&request)));
        assert!(body.contains("\"of_next_year\":1e2"), "{body}");
        bench.released().await;
        let record = bench.metrics.recent_requests(1).remove(0);
        assert_eq!(
            (record.prompt_tokens, record.completion_tokens),
            (Some(30), Some(4))
        );
    }
}

#[tokio::test]
async fn an_endpoint_without_responses_is_asked_for_a_chat() {
    let (bench, mut asked) = cloud(|path, _| {
        if path != "/v1/chat/completions" {
            return (axum::http::StatusCode::NOT_FOUND, "no").into_response();
        }
        let choice = json!({"message": {"content": "Hello"}, "finish_reason": "stop"});
        axum::Json(json!({"choices": [choice]})).into_response()
    })
    .await;
    let request = r#"{"model": "cloud", "input": "Hi"}"#;
    let reply = json(bench.post("/v1/responses", request).await).await;
    assert_eq!(reply["output"][0]["content"][0]["text"], "Hello");
    assert_eq!(asked.recv().await.unwrap().0, "/v1/responses");
    assert_eq!(asked.recv().await.unwrap().0, "/v1/chat/completions");
    // It is known by now.
    let reply = json(bench.post("/v1/responses", request).await).await;
    assert_eq!(reply["output"][0]["content"][0]["text"], "Hello");
    assert_eq!(asked.recv().await.unwrap().0, "/v1/chat/completions");
    // What no chat can say is asked for all the same.
    let refused = bench.post("/v1/responses", REQUEST).await;
    assert_eq!(refused.status(), 404);
    assert_eq!(asked.recv().await.unwrap().0, "/v1/responses");
}

#[tokio::test]
async fn a_missing_item_or_model_is_no_missing_path() {
    const ITEM: &str = r#"{"error": {"message":"Item with id 'rs_1' not found.","type":"invalid_request_error","param":"input","code":null}}"#;
    const MODEL: &str = r#"{"error":{"message":"The model `m` does not exist","param":null,"code":"model_not_found"}}"#;
    for refusal in [ITEM, MODEL] {
        let (bench, mut asked) = cloud(move |_, body| {
            if !body.contains("again") {
                let json = [(header::CONTENT_TYPE, "application/json")];
                return (axum::http::StatusCode::NOT_FOUND, json, refusal).into_response();
            }
            responds("", body)
        })
        .await;
        let refused = bench
            .post("/v1/responses", r#"{"model": "cloud", "input": "Hi"}"#)
            .await;
        assert_eq!(refused.status(), 404);
        assert_eq!(text(refused).await, refusal);
        let again = r#"{"model": "cloud", "input": "again"}"#;
        let reply = bench.post("/v1/responses", again).await;
        assert_eq!(text(reply).await, WHOLE);
        for _ in 0..2 {
            assert_eq!(asked.recv().await.unwrap().0, "/v1/responses");
        }
        assert!(asked.try_recv().is_err());
    }
}

#[tokio::test]
async fn no_endpoint_is_asked_for_a_response_in_the_background() {
    let (bench, mut asked) = cloud(responds).await;
    for background in ["true", "1", "\"true\""] {
        let more = format!("{{\"background\":{background},");
        for request in [REQUEST, r#"{"model": "cloud", "input": "Hi"}"#] {
            let refused = bench
                .post("/v1/responses", request.replacen('{', &more, 1))
                .await;
            assert_eq!(refused.status(), 400);
            let error = json(refused).await["error"].take();
            let message = error["message"].as_str().unwrap();
            assert!(message.starts_with("`background`"), "{error}");
        }
    }
    assert!(asked.try_recv().is_err());
    let at_once = REQUEST.replacen('{', "{\"background\":false,", 1);
    assert_eq!(bench.post("/v1/responses", at_once).await.status(), 200);
}

#[tokio::test]
async fn a_response_that_breaks_off_ends_with_an_error_event() {
    let cut = EVENTS.find("event: response.completed").unwrap();
    let (bench, _asked) = cloud(move |_, _| {
        (
            [(header::CONTENT_TYPE, "text/event-stream")],
            &EVENTS[..cut],
        )
            .into_response()
    })
    .await;
    let reply = text(bench.post("/v1/responses", streamed()).await).await;
    let rest = reply.strip_prefix(&EVENTS[..cut]).unwrap();
    let rest = rest.strip_prefix("event: error\ndata: ").unwrap();
    let error: Value = serde_json::from_str(rest.trim_end()).unwrap();
    assert_eq!(
        (&error["type"], &error["code"]),
        (&json!("error"), &json!("unreachable"))
    );
}

#[tokio::test]
async fn an_error_follows_half_a_line_as_an_event_of_its_own() {
    let (bench, _asked) = cloud(|_, _| {
        let half = "data: {\"type\":\"response.output_text.delta\",\"delta\":\"";
        let begun = EVENTS.split_once("event: response.completed").unwrap().0;
        let pieces = [begun.to_owned(), half.to_owned()]
            .into_iter()
            .chain(std::iter::repeat_n("a".repeat(1 << 20), 20))
            .map(Ok::<_, std::io::Error>)
            .chain([Err(std::io::Error::other("gone"))]);
        let body = Body::from_stream(stream::iter(pieces));
        ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
    })
    .await;
    let reply = text(bench.post("/v1/responses", streamed()).await).await;
    let (half, rest) = reply.rsplit_once("event: error\ndata: ").unwrap();
    assert!(half.ends_with("aaa\n\n"), "{}", &half[half.len() - 20..]);
    let error: Value = serde_json::from_str(rest.trim_end()).unwrap();
    assert_eq!(error["code"], "unreachable");
}

#[tokio::test]
async fn a_chat_passes_with_its_bytes() {
    const CHAT: &str = r#"{ "model":"cloud", "messages":[ {"role":"user","content":"Gr\u00fc\u00dfe"} ],"top_p":1.0 ,"of_next_year":{"a":1e2} }"#;
    let (bench, mut asked) = cloud(|_, _| {
        let choice = json!({"message": {"content": "Hello"}, "finish_reason": "stop"});
        axum::Json(json!({"choices": [choice]})).into_response()
    })
    .await;
    let reply = bench.post("/v1/chat/completions", CHAT).await;
    assert_eq!(reply.status(), 200);
    let (_, _, body) = asked.recv().await.unwrap();
    assert_eq!(body, CHAT.replace(r#" "model":"cloud","#, ""));
}

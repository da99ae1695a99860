//! Answers of an endpoint that are broken as servers break them, in every dialect: all of the text arrives, or an error ends the answer.

use crate::testing::{Bench, json, text, tier};
use axum::{
    Router,
    body::Body,
    http::header,
    response::{IntoResponse, Response},
    routing::post,
};
use serde_json::{Value, json};
use tierbar_core::{TierState, config::Dialect, status::EngineKind};

const PATHS: [&str; 4] = [
    "/v1/chat/completions",
    "/v1/messages",
    "/v1/responses",
    "/api/chat",
];

fn server(kind: &'static str, body: Vec<u8>) -> Router {
    let answer = move || {
        let body = body.clone();
        async move { ([(header::CONTENT_TYPE, kind)], Body::from(body)).into_response() }
    };
    Router::new()
        .route("/v1/chat/completions", post(answer.clone()))
        .route("/v1/messages", post(answer))
}

async fn ask(bench: &Bench, path: &str, stream: bool) -> Response {
    let request = match path {
        "/v1/responses" => json!({"model": "cloud", "input": "Hi", "stream": stream}),
        _ => {
            let messages = json!([{"role": "user", "content": "Hi"}]);
            json!({"model": "cloud", "messages": messages, "max_tokens": 9, "stream": stream})
        }
    };
    bench.post(path, request.to_string()).await
}

/// A Tierbar whose tier `cloud` has a server of OpenAI's dialect.
async fn bench(kind: &'static str, body: &[u8]) -> Bench {
    elsewhere(Dialect::OpenAi, server(kind, body.to_vec())).await
}

/// A Tierbar whose tier `cloud` has a server of this dialect that answers with this stream.
async fn streaming(dialect: Dialect, stream: &[&[u8]]) -> Bench {
    elsewhere(dialect, server("text/event-stream", stream.concat())).await
}

/// A Tierbar with the tier `cloud`, an endpoint.
async fn elsewhere(dialect: Dialect, routes: Router) -> Bench {
    let bench = Bench::new("127.0.0.1:11435").await;
    bench.endpoint_of(dialect, "cloud", routes).await;
    let mut cloud = tier("cloud", Some("m"), TierState::Ready);
    cloud.engine = EngineKind::Endpoint;
    bench.tiers(|tiers| tiers.push(cloud));
    bench
}

/// The events of a stream, in any dialect.
fn events(stream: &str) -> Vec<Value> {
    let data = stream
        .lines()
        .filter_map(|line| match line.strip_prefix("data: ") {
            Some("[DONE]") => None,
            None if line.starts_with('{') => Some(line),
            data => data,
        });
    data.map(|data| serde_json::from_str(data).unwrap_or_else(|error| panic!("{error}: {data}")))
        .collect()
}

/// The text of an event.
fn said(event: &Value) -> &str {
    let of_response = event["type"] == "response.output_text.delta";
    let places = [
        event.pointer("/choices/0/delta/content"),
        event.pointer("/delta/text"),
        event.pointer("/message/content"),
        event.get("delta").filter(|_| of_response),
    ];
    let mut texts = places.into_iter().flatten().filter_map(Value::as_str);
    texts.next().unwrap_or_default()
}

const DIALECTS: [Dialect; 2] = [Dialect::OpenAi, Dialect::Anthropic];

/// An event with this text, in a server's dialect.
fn delta(dialect: Dialect, text: &[u8]) -> Vec<u8> {
    let (before, after) = match dialect {
        Dialect::OpenAi => (
            &b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\""[..],
            &b"\"},\"finish_reason\":null}]}\n\n"[..],
        ),
        Dialect::Anthropic => (
            &b"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\""[..],
            &b"\"}}\n\n"[..],
        ),
    };
    [before, text, after].concat()
}

/// Anthropic's packages read the events whose names they know, and the data of each that has a name.
fn assert_named(stream: &str) {
    for event in stream.split("\n\n") {
        let field = |name: &str| {
            let value = event.lines().rev().find_map(|line| line.strip_prefix(name));
            value.unwrap_or_default().trim()
        };
        let (name, data) = (field("event:"), field("data:"));
        assert!(name.is_empty() || !data.is_empty(), "{stream}");
        let is_delta = data.contains("content_block_delta");
        assert_eq!(name == "content_block_delta", is_delta, "{stream}");
    }
}

fn begin(dialect: Dialect) -> &'static [u8] {
    match dialect {
        Dialect::OpenAi => b"",
        Dialect::Anthropic => b"data: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"content\":[],\"usage\":{\"input_tokens\":5}}}\n\nevent: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    }
}

fn end(dialect: Dialect) -> &'static [u8] {
    match dialect {
        Dialect::OpenAi => END,
        Dialect::Anthropic => b"data: {\"type\":\"content_block_stop\",\"index\":0}\n\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\ndata: {\"type\":\"message_stop\"}\n\n",
    }
}

const END: &[u8] = b"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// Events that are no part of an answer.
const NO_TEXT: &[u8] = b"data: null\n\ndata:\n\ndata: x\n\ndata: {\"object\":\"ping\"}\n\n";

#[tokio::test]
async fn a_streams_text_arrives_whole_in_each_dialect() {
    for dialect in DIALECTS {
        let delta = |text: &[u8]| delta(dialect, text);
        let object = delta(b"a b");
        let at = object.iter().position(|byte| *byte == b',').unwrap();
        let two_lines = [&object[..=at], b"\ndata: ", &object[at + 1..]].concat();
        for (mark, stream, right) in [
            (&b"\xef\xbb\xbf"[..], delta(b"a b"), "a b"),
            (b"", two_lines, "a b"),
            (b"", delta(b"a\xffb"), "a\u{fffd}b"),
            (b"", [NO_TEXT, &delta(b"a b")].concat(), "a b"),
            (
                b"",
                [delta(br"a\ud83d"), delta(br"\ude00b")].concat(),
                "a😀b",
            ),
            (
                b"",
                [delta(b"a\xf0\x9f"), delta(b"\x98\x80b")].concat(),
                "a😀b",
            ),
            (
                b"",
                [delta(br"a\ud83d"), delta(b" b")].concat(),
                "a\u{fffd} b",
            ),
            (
                b"",
                [&delta(br"a\ud83d")[..], NO_TEXT, &delta(br"\ude00b")].concat(),
                "a😀b",
            ),
        ] {
            let whole = [mark, begin(dialect), &stream, end(dialect)];
            let bench = streaming(dialect, &whole).await;
            for path in PATHS {
                let answer = text(ask(&bench, path, true).await).await;
                let events = events(&answer);
                let found: String = events.iter().map(said).collect();
                assert_eq!(found, right, "{dialect:?}, {path}: {answer}");
                assert!(!answer.contains("\"error\":{"), "{path}: {answer}");
                if path == PATHS[0] {
                    let all = events.iter().all(|event| event["choices"].is_array());
                    assert!(all, "{answer}");
                    let has_id = dialect == Dialect::OpenAi || events[0]["id"] == "msg_1";
                    assert!(has_id, "{answer}");
                }
                if path == PATHS[1] {
                    assert_named(&answer);
                }
            }
        }
    }
}

#[tokio::test]
async fn a_stream_with_a_gap_ends_with_an_error_in_each_dialect() {
    for (dialect, gap) in [
        (Dialect::OpenAi, &b"data: {\"choices\":[{\"delta\":\n\n"[..]),
        (Dialect::OpenAi, b"data: {\"choices\":[7]}\n\n"),
        (Dialect::OpenAi, b"dat: {\"choices\":[]}\n\n"),
        (
            Dialect::OpenAi,
            b"data: {\"choices\":[{\"delta\":{\"content\":\"b}}]}\n\n",
        ),
        (
            Dialect::Anthropic,
            b"data: {\"type\":\"content_block_delta\",\"delta\":\n\n",
        ),
        (
            Dialect::Anthropic,
            b"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":\n\n",
        ),
        (
            Dialect::Anthropic,
            b"dat: {\"type\":\"content_block_delta\"}\n\n",
        ),
        (
            Dialect::Anthropic,
            b"data: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"b}}\n\n",
        ),
    ] {
        let (before, after) = (delta(dialect, b"a"), delta(dialect, b"c"));
        let whole = [begin(dialect), &before, gap, &after, end(dialect)];
        let bench = streaming(dialect, &whole).await;
        for path in PATHS {
            let answer = text(ask(&bench, path, true).await).await;
            let events = events(&answer);
            let last = events.last().unwrap();
            let kind = last["type"].as_str().unwrap_or_default();
            let failed = !last["error"].is_null() || kind == "response.failed" || kind == "error";
            assert!(failed, "{dialect:?}, {path}: {answer}");
            let found: String = events.iter().map(said).collect();
            assert_eq!(found, "a", "{dialect:?}, {path}: {answer}");
            if path == PATHS[1] {
                assert_named(&answer);
            }
            let whole = ask(&bench, path, false).await;
            assert!(!whole.status().is_success(), "{dialect:?}, {path}");
        }
        let records = bench.metrics.recent_requests(99);
        assert!(
            records.iter().all(|record| record.code.is_some()),
            "{records:?}"
        );
    }
}

#[tokio::test]
async fn a_stream_that_ends_behind_a_name_ends_with_an_error() {
    let (before, name) = (
        delta(Dialect::Anthropic, b"a"),
        b"event: content_block_delta\n",
    );
    let whole = [begin(Dialect::Anthropic), &before, name];
    let bench = streaming(Dialect::Anthropic, &whole).await;
    let answer = text(ask(&bench, PATHS[1], true).await).await;
    assert_named(&answer);
    assert_eq!(events(&answer).last().unwrap()["type"], "error", "{answer}");
}

#[tokio::test]
async fn an_answer_with_calls_ends_for_them_in_each_dialect() {
    let call = |index: &str| {
        format!(
            "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{{index}\"id\":\"c\",\"function\":{{\"name\":\"look\",\"arguments\":{{\"at\":1}}}}}}]}}}}]}}\n\n"
        )
    };
    for stream in [call(""), call("\"index\":0,")] {
        let bench = bench("text/event-stream", &[stream.as_bytes(), END].concat()).await;
        let streamed = text(ask(&bench, PATHS[0], true).await).await;
        let events = events(&streamed);
        let called = &events[0]["choices"][0]["delta"]["tool_calls"][0];
        assert_eq!(called["index"], 0, "{streamed}");
        assert_eq!(called["function"]["arguments"], "{\"at\":1}");
        assert_eq!(events[1]["choices"][0]["finish_reason"], "tool_calls");
        let message = text(ask(&bench, "/v1/messages", true).await).await;
        assert!(
            message.contains("\"stop_reason\":\"tool_use\""),
            "{message}"
        );
        let whole = json(ask(&bench, PATHS[0], false).await).await;
        let choice = &whole["choices"][0];
        assert_eq!(choice["finish_reason"], "tool_calls", "{whole}");
        let arguments = &choice["message"]["tool_calls"][0]["function"]["arguments"];
        assert_eq!(*arguments, "{\"at\":1}");
    }
}

#[tokio::test]
async fn a_whole_answer_is_repaired_in_each_dialect() {
    let call = json!({"id": "c", "function": {"name": "look", "arguments": {"at": 1}}});
    let message = json!({"role": "assistant", "content": "aLETTERb", "tool_calls": [call]});
    let whole = json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]});
    let broken = whole.to_string().replace("LETTER", "\\ud83d");
    let bench = bench("application/json", broken.as_bytes()).await;
    for path in PATHS {
        for stream in [false, true] {
            let answer = ask(&bench, path, stream).await;
            assert_eq!(answer.status(), 200, "{path}");
            let answer = text(answer).await;
            assert!(answer.contains("a\u{fffd}b"), "{path}: {answer}");
        }
    }
    let openai = json(ask(&bench, PATHS[0], false).await).await;
    let choice = &openai["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls");
    assert_eq!(
        choice["message"]["tool_calls"][0]["function"]["arguments"],
        "{\"at\":1}"
    );
    let anthropic = json(ask(&bench, "/v1/messages", false).await).await;
    assert_eq!(anthropic["stop_reason"], "tool_use");
}

#[tokio::test]
async fn vectors_are_as_a_client_asks_for_them() {
    let vectors = json!({"object": "list", "data": [{"index": 0, "embedding": [1.0, -0.5]}]});
    let answer = move || std::future::ready(axum::Json(vectors.clone()));
    let bench = elsewhere(
        Dialect::OpenAi,
        Router::new().route("/v1/embeddings", post(answer)),
    )
    .await;
    let asked = async |format: &str| {
        let request = json!({"model": "cloud", "input": "a", "encoding_format": format});
        let answer = bench.post("/v1/embeddings", request.to_string()).await;
        json(answer).await["data"][0]["embedding"].take()
    };
    assert_eq!(asked("float").await, json!([1.0, -0.5]));
    assert_eq!(asked("base64").await, "AACAPwAAAL8=");
    // It ignores the length, too.
    for (length, status) in [(2, 200), (1, 400)] {
        let request = json!({"model": "cloud", "input": "a", "dimensions": length});
        let answer = bench.post("/v1/embeddings", request.to_string()).await;
        assert_eq!(answer.status(), status, "{length}");
    }
}

#[tokio::test]
async fn a_compressed_request_is_refused_by_its_name() {
    let bench = Bench::new("127.0.0.1:11435").await;
    for (path, encoding, status) in [
        ("/v1/chat/completions", "gzip", 415),
        ("/api/chat", "GZIP", 415),
        ("/v1/chat/completions", "identity", 400),
    ] {
        let request = axum::http::Request::post(path)
            .header(header::HOST, "localhost")
            .header(header::CONTENT_ENCODING, encoding)
            .body(Body::from(&b"\x1f\x8b\x08"[..]));
        let refused = bench.send(request.unwrap()).await;
        assert_eq!(refused.status(), status, "{path} {encoding}");
        let refused = text(refused).await;
        assert_eq!(
            refused.contains("content-encoding"),
            status == 415,
            "{refused}"
        );
    }
}

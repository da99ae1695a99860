use crate::testing::{Bench, json as json_of, text as body};
use axum::{
    Router,
    body::Body,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tierbar_core::{Code, Error, TierId, config::ChainConfig, journal::LogEvent};
use tierbar_inference::{dispatch::fetch_uncounted, metrics::CONTENT_TYPE};

const CHAT: &str = "/v1/chat/completions";
const ASKS_STREAM: &str = r#"{"model":"fast","stream":true,"messages":[]}"#;

/// Parses OpenMetrics strictly: each sample after the description of its family, quoted labels, no duplicate samples, and
/// an end.
fn read(text: &str) -> BTreeMap<String, f64> {
    let (mut samples, mut families) = (BTreeMap::new(), BTreeSet::new());
    let (mut family, mut kind) = (String::new(), String::new());
    let lines = text.strip_suffix("# EOF\n").expect("an end");
    for line in lines.lines() {
        if let Some(description) = line.strip_prefix("# ") {
            let [what, name, said] = description_words(description);
            match what {
                "HELP" => {
                    assert!(families.insert(name.to_owned()), "{name} comes twice");
                    name.clone_into(&mut family);
                }
                "TYPE" => said.clone_into(&mut kind),
                "UNIT" => assert!(name.ends_with(&format!("_{said}")), "{line}"),
                _ => panic!("{line}"),
            }
            assert_eq!(name, family, "{line}");
            continue;
        }
        let (labelled, value) = line.rsplit_once(' ').expect(line);
        let name = labelled.split_once('{').map_or(labelled, |(name, labels)| {
            check_labels(labels.strip_suffix('}').expect(line));
            name
        });
        let suffixes: &[&str] = match kind.as_str() {
            "counter" => &["_total"],
            "gauge" => &[""],
            "histogram" => &["_bucket", "_sum", "_count"],
            "info" => &["_info"],
            _ => panic!("{line} is a {kind}"),
        };
        let suffix = name.strip_prefix(family.as_str()).expect(line);
        assert!(suffixes.contains(&suffix), "{line}");
        let twice = samples.insert(labelled.to_owned(), value.parse().expect(line));
        assert_eq!(twice, None, "{line}");
    }
    samples
}

fn description_words(description: &str) -> [&str; 3] {
    let mut words = description.splitn(3, ' ');
    [(); 3].map(|()| words.next().expect(description))
}

fn check_labels(labels: &str) {
    for label in labels.split(',') {
        let (name, value) = label.split_once('=').expect(label);
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        assert!(name.chars().all(plain), "{label}");
        let value = value
            .strip_prefix('"')
            .and_then(|value| value.strip_suffix('"'));
        assert!(!value.expect(label).contains('"'), "{label}");
    }
}

async fn scrape(bench: &Bench) -> BTreeMap<String, f64> {
    let response = bench.get("/metrics").await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], CONTENT_TYPE);
    read(&body(response).await)
}

fn worker(answer: impl Fn() -> Response + Clone + Send + Sync + 'static) -> Router {
    Router::new().route(CHAT, post(move || std::future::ready(answer())))
}

fn events(events: &'static str) -> Response {
    (
        [(header::CONTENT_TYPE, "text/event-stream")],
        Body::from(events),
    )
        .into_response()
}

#[tokio::test]
async fn metrics_have_the_machine_and_its_tiers_from_the_start() {
    let bench = Bench::new("127.0.0.1:11435").await;
    let reply = scrape(&bench).await;
    assert_eq!(reply["tierbar_build_info{version=\"0\"}"], 1.0);
    assert_eq!(reply["tierbar_ram_total_bytes"], 0.0);
    assert_eq!(
        reply["tierbar_tier_state{tier=\"fast\",state=\"ready\"}"],
        1.0
    );
    assert_eq!(
        reply["tierbar_tier_state{tier=\"fast\",state=\"failed\"}"],
        0.0
    );
    assert_eq!(reply["tierbar_tier_footprint_bytes{tier=\"fast\"}"], 0.0);
}

#[tokio::test]
async fn a_stream_is_counted_by_the_engines_usage() {
    let bench = Bench::new("127.0.0.1:11435").await;
    bench.load(worker(|| {
        events(
            "data: {\"choices\":[{\"delta\":{\"content\":\"Paris\"}}]}\n\n\
             data: {\"choices\":[{\"delta\":{}}],\"timings\":{\"prompt_n\":3,\"cache_n\":4,\"predicted_n\":9}}\n\n\
             data: [DONE]\n\n",
        )
    }));
    body(bench.post(CHAT, ASKS_STREAM).await).await;
    let reply = scrape(&bench).await;
    let request = "{path=\"/v1/chat/completions\",status=\"200\",tier=\"fast\",code=\"\"}";
    assert_eq!(reply[&format!("tierbar_requests_total{request}")], 1.0);
    assert_eq!(reply["tierbar_prompt_tokens_total{tier=\"fast\"}"], 7.0);
    assert_eq!(reply["tierbar_completion_tokens_total{tier=\"fast\"}"], 9.0);
    assert_eq!(
        reply["tierbar_first_token_seconds_count{tier=\"fast\"}"],
        1.0
    );
    assert_eq!(reply["tierbar_answer_seconds_count{tier=\"fast\"}"], 1.0);
    assert_eq!(
        reply["tierbar_answer_seconds_bucket{le=\"+Inf\",tier=\"fast\"}"],
        1.0
    );
    assert_eq!(reply["tierbar_requests_running{tier=\"fast\"}"], 0.0);
    assert_eq!(reply["tierbar_requests_waiting{tier=\"fast\"}"], 0.0);
}

#[tokio::test]
async fn requests_are_listed_with_their_tokens_and_their_end() {
    let bench = Bench::new("127.0.0.1:11435").await;
    bench.load(worker(|| {
        events(
            "data: {\"choices\":[{\"delta\":{\"content\":\"Paris\"}}]}\n\n\
             data: {\"choices\":[{\"delta\":{}}],\"timings\":{\"prompt_n\":3,\"cache_n\":4,\"predicted_n\":9}}\n\n\
             data: [DONE]\n\n",
        )
    }));
    body(bench.post(CHAT, ASKS_STREAM).await).await;
    bench.post(CHAT, r#"{"model":"made-up"}"#).await;
    let reply = body(bench.get("/tierbar/v1/requests").await).await;
    let reply: serde_json::Value = serde_json::from_str(&reply).unwrap();
    let listed = reply["requests"].as_array().unwrap();
    assert_eq!(listed.len(), 2);
    let (refused, answered) = (&listed[0], &listed[1]);
    assert_eq!(refused["outcome"], "failed");
    assert_eq!(refused["code"], "model_unknown");
    assert_eq!(answered["outcome"], "answered");
    assert_eq!(answered["path"], CHAT);
    assert_eq!(answered["tier"], "fast");
    assert_eq!(answered["prompt_tokens"], 7);
    assert_eq!(answered["completion_tokens"], 9);
    assert!(answered["first_token_ms"].is_u64());
    let later = body(bench.get("/tierbar/v1/requests?after=2").await).await;
    assert_eq!(later, r#"{"requests":[]}"#);
}

#[tokio::test]
async fn the_indexers_work_is_counted_but_not_as_requests() {
    const EMBED: &str = "/v1/embeddings";
    let bench = Bench::new("127.0.0.1:11435").await;
    let vectors = json!({"data": [{"embedding": [1.0]}], "usage": {"prompt_tokens": 16}});
    let answer = move || std::future::ready(axum::Json(vectors.clone()));
    bench.load(Router::new().route(EMBED, post(answer)));
    for of_indexer in [true, false, true] {
        let fields = json!({"model": "fast", "input": ["a"]});
        if of_indexer {
            let inference = Arc::clone(&bench.inference);
            fetch_uncounted(inference, EMBED, fields).await.unwrap();
        } else {
            let response = bench.post(EMBED, fields.to_string()).await;
            assert_eq!(response.status(), 200);
            body(response).await;
        }
    }
    let listed = json_of(bench.get("/tierbar/v1/requests").await).await;
    assert_eq!(listed["requests"].as_array().unwrap().len(), 1, "{listed}");
    let ledger = json_of(bench.get("/tierbar/v1/ledger").await).await;
    assert_eq!(ledger["total"]["requests"], 1, "{ledger}");
    assert_eq!(ledger["total"]["prompt_tokens"], 48, "{ledger}");
    let reply = scrape(&bench).await;
    let request = "{path=\"/v1/embeddings\",status=\"200\",tier=\"fast\",code=\"\"}";
    assert_eq!(reply[&format!("tierbar_requests_total{request}")], 1.0);
    assert_eq!(reply["tierbar_prompt_tokens_total{tier=\"fast\"}"], 48.0);
}

#[tokio::test]
async fn tokens_without_valid_usage_are_counted_by_events() {
    let bench = Bench::new("127.0.0.1:11435").await;
    bench.load(worker(|| {
        events(
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n\
             data: {\"choices\":[{\"delta\":{\"content\":\"b\"}}],\"usage\":\"free\"}\n\n\
             data: {\"choices\":[],\"usage\":{\"prompt_tokens\":-5,\"completion_tokens\":null}}\n\n\
             data: [DONE]\n\n",
        )
    }));
    body(bench.post(CHAT, ASKS_STREAM).await).await;
    let reply = scrape(&bench).await;
    assert!(!reply.contains_key("tierbar_prompt_tokens_total{tier=\"fast\"}"));
    assert_eq!(reply["tierbar_completion_tokens_total{tier=\"fast\"}"], 2.0);
}

#[tokio::test]
async fn a_whole_answer_is_counted_by_its_usage() {
    let bench = Bench::new("127.0.0.1:11435").await;
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 2}});
    bench.load(worker(move || axum::Json(usage.clone()).into_response()));
    body(bench.post(CHAT, r#"{"messages":[]}"#).await).await;
    let reply = scrape(&bench).await;
    assert_eq!(reply["tierbar_prompt_tokens_total{tier=\"fast\"}"], 11.0);
    assert_eq!(reply["tierbar_completion_tokens_total{tier=\"fast\"}"], 2.0);
    assert_eq!(reply["tierbar_answer_seconds_count{tier=\"fast\"}"], 1.0);
}

#[tokio::test]
async fn refusals_have_a_code_and_no_client_label() {
    let bench = Bench::new("127.0.0.1:11435").await;
    bench.post(CHAT, r#"{"model":"made-up"}"#).await;
    bench.get("/v1/models/made-up").await;
    bench.get("/made-up").await;
    let reply = scrape(&bench).await;
    for labels in [
        "{path=\"/v1/chat/completions\",status=\"404\",tier=\"\",code=\"model_unknown\"}",
        "{path=\"/v1/models/{id}\",status=\"404\",tier=\"\",code=\"model_unknown\"}",
    ] {
        assert_eq!(reply[&format!("tierbar_requests_total{labels}")], 1.0);
    }
    assert!(reply.keys().all(|sample| !sample.contains("made-up")));
    assert!(reply.keys().any(|sample| sample.contains("path=\"other\"")));
}

#[tokio::test]
async fn a_stream_that_breaks_is_counted_with_its_code() {
    let bench = Bench::new("127.0.0.1:11435").await;
    bench.load(worker(|| {
        events("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n")
    }));
    let why = Error::new(Code::WorkerCrashed, "it fell over");
    bench.ended.send_replace(Some(why));
    body(bench.post(CHAT, ASKS_STREAM).await).await;
    let reply = scrape(&bench).await;
    let broken = "tierbar_broken_streams_total{tier=\"fast\",code=\"worker_crashed\"}";
    assert_eq!(reply[broken], 1.0);
}

#[tokio::test]
async fn waiting_requests_are_counted_while_they_wait() {
    let bench = Bench::new("127.0.0.1:11435").await;
    let waiting = bench.post(CHAT, ASKS_STREAM);
    tokio::pin!(waiting);
    assert!(futures_util::poll!(&mut waiting).is_pending());
    assert_eq!(
        scrape(&bench).await["tierbar_requests_waiting{tier=\"fast\"}"],
        1.0
    );
    bench.load(worker(|| events("data: [DONE]\n\n")));
    body(waiting.await).await;
    assert_eq!(
        scrape(&bench).await["tierbar_requests_waiting{tier=\"fast\"}"],
        0.0
    );
}

#[tokio::test]
async fn log_entries_are_counted() {
    let bench = Bench::new("127.0.0.1:11435").await;
    let fast = TierId::new("fast").unwrap();
    let load = LogEvent::for_tier(tierbar_core::journal::Kind::Load, &fast, None, "");
    bench.metrics.happened(&load);
    bench.metrics.happened(&load);
    let reply = scrape(&bench).await;
    assert_eq!(
        reply["tierbar_happenings_total{kind=\"load\",tier=\"fast\"}"],
        2.0
    );
}

#[tokio::test]
async fn skipped_endpoints_and_the_queue_are_in_the_metrics() {
    let bench = Bench::new("127.0.0.1:11435").await;
    let limited = || async {
        let after = [(header::RETRY_AFTER, "600")];
        (StatusCode::TOO_MANY_REQUESTS, after, "{}")
    };
    let limits = Router::new().route(CHAT, post(limited));
    bench.endpoint("cloud", limits).await;
    bench.endpoint("unused", Router::new()).await;
    let chain: ChainConfig = serde_json::from_value(json!({"steps": ["cloud", "queue"]})).unwrap();
    let name = TierId::new("night").unwrap();
    bench.config.lock().unwrap().chains.insert(name, chain);
    let kept = bench.post(CHAT, r#"{"model":"night","messages":[]}"#).await;
    assert_eq!(kept.status(), 202);
    let reply = scrape(&bench).await;
    let gate =
        |gate: &str| reply[&format!("tierbar_endpoint_gate{{tier=\"cloud\",gate=\"{gate}\"}}")];
    assert_eq!(
        (gate("open"), gate("cooling"), gate("refused")),
        (0.0, 1.0, 0.0)
    );
    let closed = reply["tierbar_endpoint_closed_seconds{tier=\"cloud\"}"];
    assert!((1.0..=600.0).contains(&closed), "{closed}");
    assert!(reply.keys().all(|sample| !sample.contains("unused")));
    let waiting = "tierbar_queue_requests{state=\"waiting\"}";
    let done = "tierbar_queue_requests{state=\"done\"}";
    assert_eq!((reply[waiting], reply[done]), (1.0, 0.0));
    assert!(reply["tierbar_queue_bytes"] > 0.0);
}

#[tokio::test]
async fn beyond_loopback_a_token_is_needed() {
    let bench = Bench::new("192.168.1.2:11435").await;
    let asks = axum::http::Request::get("/metrics").header(header::HOST, "192.168.1.2");
    let refused = bench.send(asks.body(Body::empty()).unwrap()).await;
    assert_eq!(refused.status(), 401);
}

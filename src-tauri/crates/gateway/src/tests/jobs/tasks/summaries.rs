//! Texts beyond the context.

use super::*;
use crate::testing::{json, text};
use axum::body::Body;
use futures_util::StreamExt;
use std::time::Duration;
use tierbar_core::{
    Code, Error, ModelId, TierState,
    judgment::{ExamOutcome, Judgment},
};
use tierbar_inference::services::models::Models;
use tokio::{sync::mpsc, time::sleep};

/// Numbered sentences, each of which is to be read.
fn book(sentences: usize) -> String {
    let sentence = |n| {
        let end = if n % 7 == 6 { "\n\n" } else { " " };
        format!("Sentence m{n:05} tells of a thing that has happened on that day to a friend.{end}")
    };
    (0..sentences).map(sentence).collect()
}

/// Whether a worker holds the request with its answer.
fn fits(request: &Value, context: u64, bytes_per_token: u64) -> bool {
    let tokens = tokens(request) * 4 / bytes_per_token;
    tokens + request["max_tokens"].as_u64().unwrap() <= context
}

/// Answers with the first sentence of what it reads, and refuses what its context does not hold.
fn reader(request: &Value, context: u64, bytes_per_token: u64) -> Response {
    let tokens = tokens(request) * 4 / bytes_per_token;
    if !fits(request, context, bytes_per_token) {
        let error = Error::new(Code::ContextExceeded, format!("{tokens} tokens do not fit"));
        return refuses(StatusCode::BAD_REQUEST, error.openai_body());
    }
    let data = data(request);
    let first = data.split_inclusive('.').next().unwrap().trim();
    let usage = json!({"prompt_tokens": tokens, "completion_tokens": 10});
    let content = json!({"text": first}).to_string();
    let choice = json!({"message": {"content": content}, "finish_reason": "stop"});
    Json(json!({"choices": [choice], "usage": usage})).into_response()
}

/// The numbers of the sentences that a text has.
fn numbers(text: &str) -> Vec<usize> {
    let found = text
        .match_indices(" m")
        .filter_map(|(at, _)| text.get(at + 2..at + 7)?.parse().ok());
    found.collect()
}

#[tokio::test]
async fn only_a_long_text_is_read_in_pieces() {
    // Four bytes a token, then two: more than what is assumed at first.
    for (bytes_per_token, sentences) in [(4, 2000), (2, 1000), (1, 400)] {
        let (bench, requests) =
            scripted(move |_, request| reader(request, 4096, bytes_per_token)).await;
        let source = book(sentences);
        let body = json!({"text": source}).to_string();
        let response = bench.post("/v1/summarize", body).await;
        assert_eq!(response.status(), 200);
        let answer = json(response).await;
        assert!(
            answer["summary"]
                .as_str()
                .unwrap()
                .starts_with("Sentence m00000"),
            "{answer}"
        );
        assert!(answer["levels"].as_u64().unwrap() >= 2, "{answer}");
        let seen = requests.all();
        let read = seen
            .iter()
            .filter(|request| fits(request, 4096, bytes_per_token));
        let mut read: Vec<_> = read.flat_map(|request| numbers(&data(request))).collect();
        read.sort_unstable();
        read.dedup();
        assert_eq!(read, (0..sentences).collect::<Vec<_>>());
        let saved = answer["saved"].as_u64().unwrap();
        let exact = source.len() as u64 / bytes_per_token;
        assert!(saved > exact / 2 && saved <= exact, "{saved} of {exact}");
    }

    let (bench, requests) = scripted(|_, request| reader(request, 4096, 4)).await;
    let answer = json(
        bench
            .post(
                "/v1/summarize",
                json!({"text": book(20), "words": 30}).to_string(),
            )
            .await,
    )
    .await;
    assert_eq!(
        (&answer["levels"], &answer["pieces"], requests.all().len()),
        (&json!(1), &json!(1), 1)
    );
    assert!(requests.texts()[0].starts_with("In at most 30 words:"));
}

#[tokio::test]
async fn the_size_of_pieces_is_learned_from_the_workers_count() {
    let (bench, requests) = scripted(|_, request| reader(request, 4096, 4)).await;
    bench
        .post("/v1/summarize", json!({"text": book(3000)}).to_string())
        .await;
    let seen = requests.all();
    let (first, second) = (data(&seen[0]).len(), data(&seen[1]).len());
    assert!(second > first * 3 / 2, "{first}, then {second}");
}

#[tokio::test]
async fn progress_comes_before_the_result() {
    let (bench, _) = scripted(|_, request| reader(request, 4096, 4)).await;
    let body = json!({"text": book(600), "stream": true}).to_string();
    let response = bench.post("/v1/summarize", body).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let events = text(response).await;
    let names: Vec<_> = events
        .lines()
        .filter_map(|line| line.strip_prefix("event: "))
        .collect();
    assert!(
        names.len() > 3
            && names[..names.len() - 1]
                .iter()
                .all(|name| *name == "progress"),
        "{names:?}"
    );
    assert_eq!(*names.last().unwrap(), "result");
    let result: Value = serde_json::from_str(
        events
            .trim_end()
            .lines()
            .last()
            .unwrap()
            .strip_prefix("data: ")
            .unwrap(),
    )
    .unwrap();
    assert!(
        result["summary"]
            .as_str()
            .unwrap()
            .starts_with("Sentence m00000")
    );
    let costs = json(bench.get("/tierbar/v1/costs").await).await;
    assert_eq!(costs["total"]["saved_tokens"], result["saved"]);

    bench
        .loaded
        .send_replace(Some(Err(Error::new(Code::Paused, "paused"))));
    let events = text(
        bench
            .post("/v1/summarize", r#"{"text": "a", "stream": true}"#)
            .await,
    )
    .await;
    assert!(
        events.contains("event: error") && events.contains("paused"),
        "{events}"
    );
}

#[tokio::test]
async fn a_disconnect_ends_the_work() {
    let mut bench = Bench::new("127.0.0.1:11435").await;
    let (asked, mut asks) = mpsc::unbounded_channel();
    let never = move || {
        asked.send(()).unwrap();
        std::future::pending::<String>()
    };
    bench.load(Router::new().route("/v1/chat/completions", post(never)));
    let response = bench
        .post(
            "/v1/summarize",
            json!({"text": book(9), "stream": true}).to_string(),
        )
        .await;
    let mut body = response.into_body().into_data_stream();
    let first = body.next().await.unwrap().unwrap();
    assert!(first.starts_with(b"event: progress"));
    // Only a stream that is read goes on.
    loop {
        tokio::select! {
            more = body.next() => assert!(more.unwrap().unwrap().starts_with(b":")),
            asked = asks.recv() => break asked.unwrap(),
        }
    }
    assert_eq!(*bench.leases.borrow(), 1);
    drop(body);
    bench.released().await;
    assert!(asks.try_recv().is_err());
}

#[tokio::test]
async fn a_model_that_does_not_shorten_a_text_is_replaced_by_a_rule() {
    let (bench, _) = scripted(|_, request| says_text(request, &data(request))).await;
    // In pieces, and at once.
    for sentences in [600, 9] {
        let source = book(sentences);
        let body = json!({"text": source, "words": 50}).to_string();
        let answer = json(bench.post("/v1/summarize", body).await).await;
        assert_eq!(
            (&answer["fallback"], &answer["levels"]),
            (&json!(true), &json!(0)),
            "{sentences}"
        );
        let words = answer["words"].as_u64().unwrap();
        assert!((10..=50).contains(&words), "{answer}");
        let summary = answer["summary"].as_str().unwrap();
        assert!(source.contains(summary.split(". ").next().unwrap()));
    }
}

#[tokio::test]
async fn a_context_without_room_is_reported() {
    let (bench, requests) = scripted(|_, request| reader(request, 1, 4)).await;
    let response = bench
        .post(
            "/v1/summarize",
            Body::from(json!({"text": book(600)}).to_string()),
        )
        .await;
    assert_eq!(response.status(), 400);
    assert_eq!(
        json(response).await["error"]["code"],
        "context_length_exceeded"
    );
    assert!(requests.all().len() < 10, "it gives up");
}

#[tokio::test]
async fn truncated_notes_are_used_to_their_last_sentence() {
    let (bench, _) =
        scripted(|_, request| completion(request, "{\"text\": \"It went well. And th", "length"))
            .await;
    let answer = json(
        bench
            .post("/v1/summarize", json!({"text": book(10)}).to_string())
            .await,
    )
    .await;
    assert_eq!(
        (&answer["summary"], &answer["cut"]),
        (&json!("It went well."), &json!(1))
    );
}

const FACTS: &str = "It was a long day. The bridge closes on 3 May for 14 weeks. There was coffee for all of us. \
    The repair costs 2.4 million euros. People talked about the weather.";

/// Both tasks' answers for a text with facts.
async fn shortened(bench: &Bench, model: &str) -> [Value; 2] {
    let body = json!({"text": FACTS, "words": 12, "model": model}).to_string();
    let summary = json(bench.post("/v1/summarize", body.clone()).await).await;
    let shorter = json(bench.post("/v1/compress", body).await).await;
    [summary, shorter]
}

fn small() -> ModelId {
    ModelId("small".to_owned())
}

#[tokio::test]
async fn a_model_that_failed_the_test_writes_no_summary() {
    for (right, model, asked) in [
        (3, "fast", 0),
        (3, "small", 0),
        (3, "auto", 2),
        (4, "fast", 2),
    ] {
        let (bench, requests) =
            scripted(|_, request| says_text(request, "The bridge closes on 3 May, for 14 weeks."))
                .await;
        let outcome = ExamOutcome {
            judgment: Judgment::Summaries,
            right,
            of: 6,
            passed: right == 4,
            milliseconds: None,
            result: json!({"right": right}),
        };
        bench.asked.store_exam_outcome(small(), outcome).await;
        for answer in shortened(&bench, model).await {
            assert_eq!(answer["fallback"], right == 3, "{model} {answer}");
        }
        let all = requests.all();
        let summaries = all.iter().filter(|request| user(request).contains(FACTS));
        assert!(summaries.count() >= asked, "{model}");
        assert_eq!(all.is_empty(), asked == 0, "{model}");
    }
}

/// How the model did once it is idle, or `None` if it took no test.
async fn examined(bench: &Bench) -> Option<(u32, bool)> {
    for _ in 0..100 {
        let stored = bench.asked.exam_outcome(small(), Judgment::Summaries).await;
        if let Some(outcome) = stored {
            return Some((outcome.right, outcome.passed));
        }
        sleep(Duration::from_secs(1)).await;
    }
    None
}

#[tokio::test(start_paused = true)]
async fn a_model_is_examined_once_no_request_waits() {
    let poem = "O gentle night, thou silver-footed guest.";
    let (bench, requests) = scripted(move |_, request| says_text(request, poem)).await;
    let [first, _] = shortened(&bench, "fast").await;
    assert_eq!(first["fallback"], false);
    let before = requests.all().len();
    assert_eq!(examined(&bench).await, Some((0, false)));
    assert_eq!(requests.all().len(), before + 6);
    let [second, _] = shortened(&bench, "fast").await;
    assert_eq!(second["fallback"], true);
    assert_eq!(requests.all().len(), before + 6);
}

#[tokio::test(start_paused = true)]
async fn no_model_is_loaded_to_be_examined() {
    let (bench, requests) =
        scripted(|_, request| says_text(request, "The bridge closes on 3 May.")).await;
    shortened(&bench, "fast").await;
    let before = requests.all().len();
    bench.tiers(|tiers| tiers[0].state = TierState::Stopped);
    assert_eq!(examined(&bench).await, None);
    assert_eq!(requests.all().len(), before);
}

#[tokio::test(start_paused = true)]
async fn a_model_unloaded_before_its_test_is_tested_later() {
    let (bench, _) = scripted(|_, request| says_text(request, "The bridge closes on 3 May.")).await;
    for _ in 0..4 {
        shortened(&bench, "fast").await;
        bench.tiers(|tiers| tiers[0].state = TierState::Stopped);
        assert_eq!(examined(&bench).await, None);
        bench.tiers(|tiers| tiers[0].state = TierState::Ready);
    }
    shortened(&bench, "fast").await;
    assert!(examined(&bench).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_file_that_is_replaced_meanwhile_gets_no_mark() {
    let (bench, _) = scripted(|_, request| says_text(request, "The bridge closes on 3 May.")).await;
    shortened(&bench, "fast").await;
    bench
        .status
        .send_modify(|status| Arc::make_mut(status).models_revision = 1);
    assert_eq!(examined(&bench).await, None);
}

//! Chats that the context does not hold, with a worker that counts a byte as a token.

use super::{Follower, texts};
use crate::testing::{Bench, json};
use axum::{
    Router,
    body::Bytes,
    http::header,
    response::{IntoResponse, Response},
    routing::post,
};
use serde_json::{Value, json};
use tierbar_core::{Code, Error};
use tierbar_inference::CHAT;
use tokio::sync::mpsc;

/// As the tier of [`Bench`] has it.
const CONTEXT: usize = 4096;

struct Full {
    bench: Bench,
    requests: mpsc::UnboundedReceiver<Value>,
    chat: String,
}

fn bytes(request: &Value) -> usize {
    let messages = request["messages"].as_array().unwrap().iter();
    messages
        .map(|message| message["content"].as_str().unwrap().len())
        .sum()
}

/// The first letter of each message that was sent.
fn firsts(request: &Value) -> String {
    let messages = request["messages"].as_array().unwrap().iter();
    let firsts = messages.map(|message| &message["content"].as_str().unwrap()[..1]);
    firsts.collect()
}

fn answer(request: &Value) -> Response {
    let prompt = bytes(request);
    if prompt >= CONTEXT {
        let error = Error::new(Code::ContextExceeded, "too long")
            .detail("prompt_tokens", prompt)
            .detail("context_tokens", CONTEXT);
        return (
            axum::http::StatusCode::BAD_REQUEST,
            axum::Json(error.openai_body()),
        )
            .into_response();
    }
    let figures = json!({
        "usage": {"prompt_tokens": prompt, "completion_tokens": 2},
        "timings": {"prompt_ms": 1.0, "predicted_ms": 1.0, "prompt_n": prompt, "predicted_n": 2, "n_ctx": CONTEXT},
    });
    let mut whole = json!({"choices": [{"index": 0, "finish_reason": "stop"}]});
    let fields = whole.as_object_mut().unwrap();
    fields.extend(figures.as_object().unwrap().clone());
    if request["stream"] == true {
        whole["choices"][0]["delta"] = json!({"content": "ok"});
        let kind = [(header::CONTENT_TYPE, "text/event-stream")];
        return (kind, format!("data: {whole}\n\ndata: [DONE]\n\n")).into_response();
    }
    let summary = json!({"text": "They counted."}).to_string();
    whole["choices"][0]["message"] = json!({"content": summary});
    axum::Json(whole).into_response()
}

impl Full {
    /// A chat with so many answered questions of 900 bytes: `1…`, `2…` and so on.
    async fn new(exchanges: usize) -> Self {
        let bench = Bench::new("127.0.0.1:11435").await;
        let (asked, requests) = mpsc::unbounded_channel();
        let worker = move |body: Bytes| {
            let request: Value = serde_json::from_slice(&body).unwrap();
            let response = answer(&request);
            let _gone = asked.send(request);
            std::future::ready(response)
        };
        bench.load(Router::new().route(CHAT, post(worker)));
        let made = json(bench.ask("POST", "/tierbar/v1/chats", "{}").await).await;
        let chat = format!("/tierbar/v1/chats/{}", made["id"].as_str().unwrap());
        assert_eq!(made["when_full"], "refuse");
        let full = Self {
            bench,
            requests,
            chat,
        };
        for exchange in 1..=exchanges {
            full.add("user", &question(exchange)).await;
            full.add("assistant", "ok").await;
        }
        full
    }

    async fn add(&self, role: &str, content: &str) {
        let body = json!({"role": role, "content": content}).to_string();
        let path = format!("{}/messages", self.chat);
        assert_eq!(self.bench.ask("POST", &path, body).await.status(), 201);
    }

    /// The events of a turn.
    async fn turn(&self, body: Value) -> Vec<Value> {
        let path = format!("{}/turns", self.chat);
        let begun = self.bench.ask("POST", &path, body.to_string()).await;
        assert_eq!(begun.status(), 201);
        let id = json(begun).await["id"].as_str().unwrap().to_owned();
        let events = self.bench.get(&format!("{path}/{id}/events")).await;
        let mut follower = Follower {
            body: events.into_body(),
            read: String::new(),
        };
        let mut events = Vec::new();
        while let Some((_, event)) = follower.next().await {
            events.push(event);
        }
        events
    }

    fn sent(&mut self) -> Vec<Value> {
        std::iter::from_fn(|| self.requests.try_recv().ok()).collect()
    }
}

fn question(number: usize) -> String {
    format!("{number}{}", "x".repeat(899))
}

fn of_type<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events
        .iter()
        .filter(|event| event["type"] == kind)
        .collect()
}

#[tokio::test]
async fn a_full_chat_is_refused_and_the_hint_names_the_choices() {
    let mut full = Full::new(5).await;
    let events = full.turn(json!({"text": question(6)})).await;
    let last = events.last().unwrap();
    assert_eq!(
        (&last["type"], &last["code"]),
        (&json!("failed"), &json!("context_length_exceeded"))
    );
    let hint = last["hint"].as_str().unwrap();
    assert!(hint.contains("summarize the oldest messages"), "{hint}");
    assert_eq!(full.sent().len(), 1);
}

#[tokio::test]
async fn the_oldest_messages_are_left_out_and_the_chat_stays_whole() {
    let mut full = Full::new(5).await;
    let asked = json!({"text": question(6), "when_full": "drop"});
    let events = full.turn(asked).await;
    let left = of_type(&events, "left_out");
    assert_eq!(left.len(), 1, "{events:?}");
    assert_eq!(left[0]["messages"], 6);
    let message = &events.last().unwrap()["message"];
    assert_eq!(message["left_out"]["messages"], 6);
    assert_eq!(message["left_out"]["summary"], Value::Null);
    assert_eq!(message["context"]["context_tokens"], CONTEXT);
    // The worker's figures decide, so that the second try fits.
    let sent: Vec<_> = full.sent().iter().map(firsts).collect();
    assert_eq!(sent, ["1o2o3o4o5o6", "4o5o6"]);

    // The choice holds, and the last answer's figures save the refused try.
    let mut text = full.turn(json!({"text": question(7)})).await;
    assert_eq!(text.pop().unwrap()["message"]["left_out"]["messages"], 8);
    let sent: Vec<_> = full.sent().iter().map(firsts).collect();
    assert_eq!(sent, ["5o6o7"]);
    let chat = json(full.bench.get(&full.chat).await).await;
    assert_eq!(
        (texts(&chat).len(), &chat["when_full"]),
        (14, &json!("drop"))
    );
}

#[tokio::test]
async fn a_summary_is_written_once_and_grows() {
    let mut full = Full::new(5).await;
    let asked = json!({"text": question(6), "when_full": "summarize"});
    let events = full.turn(asked).await;
    let message = &events.last().unwrap()["message"];
    assert_eq!(message["left_out"]["messages"], 8, "{events:?}");
    assert_eq!(message["left_out"]["summary"], "They counted.");
    let waits = of_type(&events, "progress");
    assert!(
        waits.iter().any(|event| event["stage"] == "summarize"),
        "{events:?}"
    );
    let sent = full.sent();
    let last = sent.last().unwrap();
    assert_eq!(firsts(last), "So6");
    let first = last["messages"][0]["content"].as_str().unwrap();
    assert!(
        first.contains("They counted.") && first.contains("\n\n5x"),
        "{first}"
    );
    let summaries = |sent: &[Value]| {
        let whole = sent.iter().filter(|request| request["stream"] != true);
        whole.count()
    };
    assert!(summaries(&sent) > 0);

    // Answered once more, and asked on: the summary is known.
    for (body, tries) in [(json!({}), 2), (json!({"text": "7?"}), 1)] {
        full.turn(body).await;
        let sent = full.sent();
        assert_eq!((sent.len(), summaries(&sent)), (tries, 0));
        assert!(firsts(&sent[tries - 1]).starts_with("So6"));
    }
    // What leaves next is added to it.
    let events = full.turn(json!({"text": question(8).repeat(2)})).await;
    let left = &events.last().unwrap()["message"]["left_out"];
    assert!(left["messages"].as_u64() > Some(8), "{events:?}");
    let sent = full.sent();
    let text = sent[0]["messages"][1]["content"].as_str().unwrap();
    assert!(
        text.contains("Summary of what came before:\nThey counted."),
        "{text}"
    );
}

#[tokio::test]
async fn a_question_that_alone_exceeds_the_context_is_refused() {
    for choice in ["drop", "summarize"] {
        let mut full = Full::new(2).await;
        let asked = json!({"text": "9".repeat(5000), "when_full": choice});
        let events = full.turn(asked).await;
        let last = events.last().unwrap();
        assert_eq!(
            (&last["type"], &last["code"]),
            (&json!("failed"), &json!("context_length_exceeded"))
        );
        let sent: Vec<_> = full.sent().iter().map(firsts).collect();
        assert_eq!(sent, ["1o2o9", "9"], "{choice}");
    }
}

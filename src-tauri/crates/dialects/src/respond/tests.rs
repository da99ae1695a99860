use super::*;
use crate::testing::{events_of, failed, text};
use axum::http::StatusCode;
use futures_util::stream as streams;
use serde_json::json;
use tierbar_core::{Code, Error, TierId};
use tierbar_inference::ask::Stage;

/// Writes down the events.
struct Scribe;

impl Dialect for Scribe {
    const STREAM: &'static str = "text/plain";
    type Rendered = String;

    fn event(&mut self, event: Event) -> String {
        match event {
            Event::Progress(_) => "…".to_owned(),
            Event::Text(text) => text,
            Event::Finished { .. } => ".".to_owned(),
            Event::Failed(failed) => format!("!{failed}"),
            _ => String::new(),
        }
    }

    fn whole(self, answer: CompleteAnswer) -> String {
        answer.text
    }
}

#[tokio::test]
async fn a_stream_is_rendered_event_by_event() {
    let mut events = events_of([json!({"choices": [{"delta": {"content": "Hi"}}]})]);
    events.insert(0, Event::Progress(Stage::Load));
    let body = stream(Scribe, streams::iter(events));
    assert_eq!(text(body.into_response()).await, "…Hi.");
    let gone = failed(Error::new(Code::WorkerCrashed, "gone"));
    let body = stream(Scribe, streams::iter([Event::Text("Hi".to_owned()), gone]));
    assert_eq!(text(body.into_response()).await, "Hi!gone");
}

#[test]
fn a_refusal_keeps_its_headers_and_whether_it_may_wait() {
    let limited = Error::new(Code::Overloaded, "slow down").detail("retry_after_seconds", 7);
    let mut failed = AnswerFailure {
        error: limited.clone(),
        body: None,
        status: Some(429),
        may_wait: true,
        source: Source {
            tier: Some(TierId::new("cloud").unwrap()),
            why: Some("it is free".to_owned()),
            ..Source::default()
        },
    };
    let refused = refusal(failed.clone());
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.headers()["retry-after"], "7");
    assert_eq!(refused.headers()["x-tierbar-tier"], "cloud");
    assert_eq!(refused.headers()["content-type"], "application/json");
    assert!(refused.extensions().get::<QueuePermission>().is_some());
    assert_eq!(refused.extensions().get::<Error>(), Some(&limited));
    // No tier has answered.
    failed.source.tier = None;
    failed.may_wait = false;
    let refused = refusal(failed);
    assert!(!refused.headers().contains_key("x-tierbar-why"));
    assert!(refused.extensions().get::<QueuePermission>().is_none());
}

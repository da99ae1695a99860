use crate::testing::{Bench, json};
use axum::http::Request;
use axum::http::header;
use jiff::Timestamp;
use std::sync::Arc;
use tierbar_core::{Code, Error, status::Status};

const ASK: &str =
    r#"{"model": "fast", "max_tokens": 5, "messages": [{"role": "user", "content": "x"}]}"#;
const TASK: &str = r#"{"model": "fast", "text": "x"}"#;

async fn bench(left_ms: Option<i64>) -> Bench {
    let bench = Bench::new("127.0.0.1:11435").await;
    let refusal = Error::new(Code::Paused, "Tierbar is paused");
    bench.loaded.send_replace(Some(Err(refusal)));
    bench.status.send_modify(|status| {
        let status: &mut Status = Arc::make_mut(status);
        let end = left_ms.map(|left| Timestamp::now().as_millisecond() + left);
        status.guard.paused_until = end;
    });
    bench
}

#[tokio::test]
async fn a_pause_with_an_end_has_a_retry_after_in_each_dialect() {
    let bench = bench(Some(7_200_000)).await;
    for (path, body, seconds) in [
        ("/v1/chat/completions", ASK, "/error/retry_after_seconds"),
        ("/v1/messages", ASK, "/error/retry_after_seconds"),
        ("/api/chat", ASK, "/retry_after_seconds"),
        ("/v1/triage", TASK, "/error/retry_after_seconds"),
        ("/v1/context/save", ASK, "/error/retry_after_seconds"),
    ] {
        let refused = bench.ask("POST", path, body).await;
        assert_eq!(refused.status(), 503, "{path}");
        let after = refused.headers()[header::RETRY_AFTER].clone();
        let after: u64 = after.to_str().unwrap().parse().unwrap();
        assert!((7100..=7200).contains(&after), "{path} {after}");
        let reply = json(refused).await;
        assert_eq!(reply.pointer(seconds).unwrap(), after, "{path} {reply}");
    }
}

#[tokio::test]
async fn a_pause_without_an_end_has_no_retry_after() {
    for left in [None, Some(-1000)] {
        let refused = bench(left).await.post("/v1/chat/completions", ASK).await;
        assert_eq!(refused.status(), 503);
        assert!(!refused.headers().contains_key(header::RETRY_AFTER));
    }
}

#[tokio::test]
async fn a_queued_request_does_not_wait_for_a_pauses_planned_end() {
    let bench = bench(Some(7_200_000)).await;
    let ask = Request::post("/v1/chat/completions")
        .header(header::HOST, "localhost")
        .header("x-tierbar-queue", "allow")
        .body(ASK.into())
        .unwrap();
    let kept = bench.send(ask).await;
    assert_eq!(kept.status(), 202);
    let reply = json(kept).await;
    let time = |name: &str| reply[name].as_u64().unwrap();
    assert!(
        time("not_before_ms") < time("created_ms") + 60_000,
        "{reply}"
    );
}

//! Servers that refuse, break off, or are not Anthropic's.

use super::*;
use axum::http::StatusCode;
use futures_util::StreamExt;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio_stream::wrappers::UnboundedReceiverStream;

fn refusal(status: u16, kind: &'static str) -> Response {
    let status = StatusCode::from_u16(status).unwrap();
    let body = json!({"type": "error", "error": {"type": kind, "message": "Not now."}, "request_id": "req_1"});
    let reply = [
        ("retry-after", "7"),
        ("anthropic-ratelimit-requests-remaining", "0"),
    ];
    (status, reply, Json(body)).into_response()
}

#[tokio::test]
async fn a_refusal_keeps_its_status_in_openais_form() {
    for (status, kind, openai_type) in [
        (429, "rate_limit_error", "rate_limit_error"),
        (529, "overloaded_error", "server_error"),
        (400, "invalid_request_error", "invalid_request_error"),
    ] {
        let (routes, _asked) = scripted(move || refusal(status, kind));
        let (mut bench, _) = bench(routes, "claude-haiku-4-5").await;
        for chat in [CHAT.to_owned(), streaming()] {
            let refused = bench.post(inference::CHAT, chat).await;
            assert_eq!(refused.status().as_u16(), status);
            let error = &json(refused).await["error"];
            assert_eq!(
                (&error["type"], &error["code"]),
                (&json!(openai_type), &json!(kind))
            );
            assert_eq!(error["message"], "Not now.");
        }
        bench.released().await;
    }
}

#[tokio::test]
async fn a_limit_keeps_its_retry_headers() {
    let (routes, _asked) = scripted(|| refusal(429, "rate_limit_error"));
    let (_bench, server) = bench(routes, "claude-haiku-4-5").await;
    let remote = Remote::new(Duration::from_secs(60)).unwrap();
    let url = format!("http://{server}");
    let mut upstream = tierbar_inference::clouds::anthropic::post(
        &remote,
        &url,
        inference::CHAT,
        None,
        serde_json::from_str(CHAT).unwrap(),
    )
    .await
    .unwrap();
    assert_eq!(upstream.head.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(upstream.head.headers["retry-after"], "7");
    assert_eq!(
        upstream.head.headers["anthropic-ratelimit-requests-remaining"],
        "0"
    );
    let body = upstream.whole(1 << 20).await.unwrap();
    assert_eq!(
        serde_json::from_slice::<Value>(&body).unwrap()["error"]["request_id"],
        "req_1"
    );
}

#[tokio::test]
async fn a_refused_key_asks_the_user_for_another() {
    let (routes, _asked) = scripted(|| refusal(401, "authentication_error"));
    let (bench, server) = bench(routes, "claude-haiku-4-5").await;
    let refused = bench.post(inference::CHAT, CHAT).await;
    assert_eq!(refused.status(), 502);
    let error = &json(refused).await["error"];
    let hint = error["hint"].as_str().unwrap();
    assert!(
        hint.contains(&format!("`tierbar secret set {server}`")),
        "{hint}"
    );
}

#[tokio::test]
async fn a_truncated_stream_always_ends_with_an_error() {
    let (first, _) = STREAMED.split_once("event: content_block_stop").unwrap();
    let (almost, _) = STREAMED.split_once("event: message_stop").unwrap();
    // The last within a letter.
    for cut in [first.len(), almost.len(), first.len() - 9] {
        let cut = &STREAMED.as_bytes()[..cut];
        let (routes, _asked) = scripted(move || events(cut));
        let (mut bench, server) = bench(routes, "claude-haiku-4-5").await;
        let reply = text(bench.post(inference::CHAT, streaming()).await).await;
        let last = reply
            .lines()
            .rfind(|line| line.starts_with("data: "))
            .unwrap();
        assert!(last.contains("\"code\":\"unreachable\""), "{reply}");
        assert!(
            last.contains(&format!(
                "the endpoint of fast, http://{server}/, ended its answer early"
            )),
            "{reply}"
        );
        assert!(!reply.contains("[DONE]"), "{reply}");
        bench.released().await;
    }
}

#[tokio::test]
async fn an_error_event_is_the_last() {
    let (begun, _) = STREAMED.split_once("event: content_block_stop").unwrap();
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let stream = format!(
        "{begun}event: error\ndata: {error}\n\nevent: ping\ndata: {{\"type\":\"ping\"}}\n\n"
    );
    let (routes, _asked) = scripted(move || events(stream.clone()));
    let (mut bench, _) = bench(routes, "claude-haiku-4-5").await;
    let reply = text(bench.post(inference::CHAT, streaming()).await).await;
    assert!(reply.contains("Grüße"), "{reply}");
    let last = reply.trim_end().lines().last().unwrap();
    let last: Value = serde_json::from_str(last.strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!(last["error"]["message"], "Overloaded");
    bench.released().await;
}

#[tokio::test]
async fn a_disconnect_closes_the_connection() {
    let (script, lines) = mpsc::unbounded_channel::<Result<&str, std::io::Error>>();
    let (leaving, gone) = oneshot::channel::<()>();
    let held = std::sync::Arc::new(std::sync::Mutex::new(Some((lines, leaving))));
    let (routes, _asked) = scripted(move || {
        let (lines, leaving) = held.lock().unwrap().take().unwrap();
        let lines = UnboundedReceiverStream::new(lines).map(move |line| {
            let _until_dropped = &leaving;
            line
        });
        events(Body::from_stream(lines))
    });
    let (mut bench, _) = bench(routes, "claude-haiku-4-5").await;
    let (first, _) = STREAMED.split_once("event: ping").unwrap();
    script.send(Ok(first)).unwrap();
    let answer = bench.post(inference::CHAT, streaming()).await;
    let mut body = answer.into_body().into_data_stream();
    let begun = body.next().await.unwrap().unwrap();
    assert!(begun.starts_with(b"data: {\"id\":\"msg_1\""));
    drop(body);
    gone.await.unwrap_err();
    bench.released().await;
}

#[tokio::test]
async fn an_answer_of_another_type_is_reported() {
    for answer in ["<html>", "[]", r#"{"content": "text"}"#] {
        let (routes, _asked) = scripted(move || answer.into_response());
        let (bench, _) = bench(routes, "claude-haiku-4-5").await;
        let reply = bench.post(inference::CHAT, CHAT).await;
        assert_eq!(reply.status(), 502, "{answer}");
        let reply = text(reply).await;
        assert!(
            reply.contains("did not answer in Anthropic's form"),
            "{reply}"
        );
    }
    let (routes, _asked) = scripted(|| events("data: ".to_owned() + &"x".repeat(2 << 20)));
    let (bench, _) = bench(routes, "claude-haiku-4-5").await;
    let reply = text(bench.post(inference::CHAT, streaming()).await).await;
    assert!(
        reply.contains("sends an event of more than 1 MiB"),
        "{reply}"
    );
}

#[tokio::test]
async fn unsupported_requests_are_refused_locally() {
    let (routes, mut asked) = scripted(message);
    let (mut bench, _) = bench(routes, "claude-haiku-4-5").await;
    for (path, body, says) in [
        (
            inference::TEXT,
            r#"{"model": "fast", "prompt": "Hi"}"#,
            "no equivalent of /v1/completions",
        ),
        (
            "/v1/embeddings",
            r#"{"model": "fast", "input": "Hi"}"#,
            "no equivalent of /v1/embeddings",
        ),
        (
            inference::CHAT,
            r#"{"model": "fast", "n": 2, "messages": [{"role": "user"}]}"#,
            "`n` must be 1",
        ),
        (
            inference::CHAT,
            r#"{"model": "fast", "messages": "Hi"}"#,
            "expected a sequence",
        ),
    ] {
        let refused = bench.post(path, body).await;
        assert_eq!(refused.status(), 400, "{body}");
        let error = &json(refused).await["error"];
        assert_eq!(error["code"], "bad_request");
        assert!(error["message"].as_str().unwrap().contains(says), "{error}");
    }
    bench.released().await;
    assert!(asked.try_recv().is_err());
}

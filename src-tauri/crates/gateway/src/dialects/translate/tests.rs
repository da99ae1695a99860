use super::*;
use crate::{inference::chain::MayWait, testing::text};
use serde_json::json;

/// Writes down what it is told.
struct Scribe;

impl Dialect for Scribe {
    const STREAM: &'static str = "text/plain";
    fn waiting(&mut self) -> String {
        "…".to_owned()
    }
    fn chunk(&mut self, mut chunk: Chunk) -> String {
        let choice = chunk.choices.pop();
        let content = choice.and_then(|choice| choice.delta.content);
        content.unwrap_or_default()
    }
    fn end(&mut self) -> String {
        ".".to_owned()
    }
    fn failed(&mut self, error: &Error) -> String {
        format!("!{error}")
    }
    fn whole(self, answer: Completion) -> Value {
        json!({"content": answer.choices[0].message.content})
    }
}

fn events(stream: &str, piece: usize) -> Response {
    let pieces: Vec<_> = stream
        .as_bytes()
        .chunks(piece)
        .map(|piece| Ok::<_, Infallible>(Bytes::copy_from_slice(piece)))
        .collect();
    let body = Body::from_stream(stream::iter(pieces));
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

const STREAM: &str = ": loading\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"Grüße\"}}]}\r\n\r\ndata: no json\n\n";

#[tokio::test]
async fn a_stream_is_turned_however_it_is_cut() {
    for piece in 1..=STREAM.len() {
        let stream = format!("{STREAM}data: [DONE]\n\ndata: more\n\n");
        let reply = translate(Scribe, events(&stream, piece)).await.unwrap();
        assert_eq!(reply.headers()[header::CONTENT_TYPE], "text/plain");
        assert_eq!(text(reply).await, "…Grüße.");
    }
}

#[tokio::test]
async fn a_stream_that_breaks_off_says_so_once() {
    let failed =
        format!("{STREAM}data: {{\"error\":{{\"message\":\"gone\"}}}}\n\ndata: [DONE]\n\n");
    let told_failed = translate(Scribe, events(&failed, 7)).await.unwrap();
    assert_eq!(text(told_failed).await, "…Grüße!gone");
    let cut = translate(Scribe, events(STREAM, 7)).await.unwrap();
    assert!(text(cut).await.starts_with("…Grüße!the answer ended"));
}

#[tokio::test]
async fn an_event_that_cannot_be_read_is_the_end_and_no_gap() {
    let odd = format!("{STREAM}data: {{\"choices\":[7]}}\n\ndata: [DONE]\n\n");
    let reply = translate(Scribe, events(&odd, 7)).await.unwrap();
    let reply = text(reply).await;
    assert!(
        reply.starts_with("…Grüße!the model's server did not"),
        "{reply}"
    );
    assert!(!reply.ends_with('.'), "{reply}");
}

#[tokio::test]
async fn a_stream_without_end_is_ended() {
    let piece = Bytes::from(vec![b' '; 4 << 20]);
    let pieces = stream::repeat(piece).map(Ok::<_, Infallible>);
    let body = Body::from_stream(pieces);
    let endless = ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response();
    let reply = translate(Scribe, endless).await.unwrap();
    assert_eq!(text(reply).await, "!the answer is longer than 256 MiB");
}

#[tokio::test]
async fn a_refusal_keeps_its_status_its_headers_and_what_is_noted_of_it() {
    let headers = [
        ("retry-after", "7"),
        ("x-tierbar-tier", "cloud"),
        ("content-type", "text/html"),
    ];
    let mut limited = (StatusCode::TOO_MANY_REQUESTS, headers, "<html>").into_response();
    limited.extensions_mut().insert(MayWait);
    let refused = translate(Scribe, limited).await.unwrap();
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.headers()["retry-after"], "7");
    assert_eq!(refused.headers()["x-tierbar-tier"], "cloud");
    assert_eq!(refused.headers()["content-type"], "application/json");
    assert!(refused.extensions().get::<MayWait>().is_some());
    let error = refused.extensions().get::<Error>().unwrap();
    assert_eq!(error.code, Code::Overloaded);
    assert_eq!(error.details["retry_after_seconds"], 7);
}

#[tokio::test]
async fn a_whole_answer_is_turned_and_a_refusal_is_an_error() {
    let answer = Json(json!({"choices": [{"message": {"content": "yes"}}]}));
    let told_whole = translate(Scribe, answer.into_response()).await.unwrap();
    assert_eq!(text(told_whole).await, r#"{"content":"yes"}"#);
    let refused = Error::new(Code::ContextExceeded, "too long");
    let refused = translate(Scribe, Failure(refused).into_response())
        .await
        .unwrap();
    assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
    let error = refused.extensions().get::<Error>().unwrap();
    assert_eq!(error.code, Code::ContextExceeded);
    let foreign = translate(Scribe, "hello".into_response()).await;
    assert_eq!(foreign.unwrap_err().0.code, Code::Unreachable);
}

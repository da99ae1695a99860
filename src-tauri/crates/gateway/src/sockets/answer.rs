//! The answer to a turn, as the messages that render it.

use super::Account;
use axum::{
    Router,
    body::Body,
    http::{Request, header},
    response::Response,
};
use futures_util::StreamExt;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use tierbar_core::{Code, Error, json, json_edit};
use tierbar_edge::keys::Weight;
use tierbar_inference::{body, lines::Lines};
use tokio::sync::mpsc;
use tower::ServiceExt;

/// In bytes.
const REFUSAL_LIMIT: usize = 1 << 20;
/// Of one event, of which there are three copies at a time: its bytes, its text, and the items of its response. The last has the whole
/// response, whose server may have sent all of it at once: 16 MiB, of which events are made.
const EVENT_LIMIT: usize = 17 << 20;
/// A longer event, in bytes, is charged: as many as a channel holds of shorter ones are little.
const CHARGED_EVENT: usize = 64 << 10;
/// After a longer event, in bytes, the client reads what it has before more is read of the answer, so that few such events are in memory.
const LONG_EVENT: usize = 1 << 20;
/// Of a long event on its way to the client: its text, and what the socket writes of it.
const COPIES: usize = 2;

/// A message on its way to the client. A long one is charged until it has been sent.
#[derive(Debug)]
pub(super) struct Rendered {
    pub(super) text: String,
    pub(super) weight: Option<Weight>,
}

impl From<String> for Rendered {
    fn from(text: String) -> Self {
        Self { text, weight: None }
    }
}

/// A response that can be continued.
#[derive(Debug)]
pub(super) struct ContinuableResponse {
    pub(super) id: String,
    /// Its items as JSON, with commas between them.
    pub(super) items: String,
}

/// Sends the request, and its answer as messages to `messages`. Returns the response, unless it has failed.
pub(super) async fn answer(
    router: Router,
    request: Request<Body>,
    account: Account,
    messages: mpsc::Sender<Rendered>,
) -> Option<ContinuableResponse> {
    let Ok(response) = router.oneshot(request).await;
    if !is_stream(&response) {
        let refusal = refusal(response).await;
        messages.send(refusal.into()).await.ok()?;
        return None;
    }
    let mut body = response.into_body().into_data_stream();
    let (mut lines, mut events) = (Lines::default(), Events::default());
    // Of a long event that is arriving.
    let mut weight = None;
    while let Some(Ok(bytes)) = body.next().await {
        if events.data.len() + lines.pending() > EVENT_LIMIT {
            let most = EVENT_LIMIT >> 20;
            let message = format!("the answer has an event of more than {most} MiB");
            let error = Error::new(Code::Unreachable, message);
            messages.send(error_message(&error).into()).await.ok()?;
            return None;
        }
        let arrived = events.data.len() + lines.pending() + bytes.len();
        if let Err(full) = charge(&account, &mut weight, arrived) {
            messages.send(error_message(&full).into()).await.ok()?;
            return None;
        }
        let complete = lines.complete(&bytes);
        let text = String::from_utf8_lossy(&complete);
        let read = text.lines().filter_map(|line| events.line(line));
        let read: Vec<_> = read.collect();
        drop(text);
        drop(complete);
        for (text, end) in read {
            let is_long = text.len() > LONG_EVENT;
            let is_charged = text.len() > CHARGED_EVENT;
            if is_charged && let Err(full) = charge(&account, &mut weight, COPIES * text.len()) {
                messages.send(error_message(&full).into()).await.ok()?;
                return None;
            }
            let weight = if is_charged { weight.take() } else { None };
            let answered = match end {
                Some(End::Answered) => continuable_response(&text),
                _ => None,
            };
            messages.send(Rendered { text, weight }).await.ok()?;
            if end.is_some() {
                return answered;
            }
            if is_long {
                let all = messages.max_capacity();
                drop(messages.reserve_many(all).await.ok()?);
            }
        }
    }
    let error = Error::new(Code::Internal, "the answer ended without its last event");
    messages.send(error_message(&error).into()).await.ok()?;
    None
}

/// Charges what there is of a long event.
fn charge(account: &Account, weight: &mut Option<Weight>, bytes: usize) -> Result<(), Error> {
    if bytes <= CHARGED_EVENT {
        *weight = None;
        return Ok(());
    }
    if weight.is_none() {
        *weight = Some(account.weigh());
    }
    weight.as_mut().map_or(Ok(()), |weight| weight.cover(bytes))
}

/// What the last event says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Answered,
    Failed,
}

/// Reads events by their lines. Their kind is in their data; some servers write it in no line of its own.
#[derive(Debug, Default)]
struct Events {
    kind: String,
    data: String,
}

impl Events {
    /// The event that the line ends as a message, and whether it is the last. What is no event of a response, such as `[DONE]`, is none.
    fn line(&mut self, line: &str) -> Option<(String, Option<End>)> {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "" if line.is_empty() => {}
            "event" => {
                value.clone_into(&mut self.kind);
                return None;
            }
            "data" => {
                if !self.data.is_empty() {
                    self.data.push('\n');
                }
                self.data.push_str(value);
                return None;
            }
            _ => return None,
        }
        let Self { kind, data } = std::mem::take(self);
        let named: EventType = serde_json::from_str(&data).ok()?;
        let (kind, text) = match named.kind {
            Some(kind) => (kind, data),
            None if kind.is_empty() => return None,
            None => {
                let change = [("type", Some(kind.as_str().into()))];
                let text = json_edit::edit(data.as_bytes(), &change);
                (kind, String::from_utf8(text).ok()?)
            }
        };
        let end = match &*kind {
            "response.completed" | "response.incomplete" => Some(End::Answered),
            "response.failed" | "error" => Some(End::Failed),
            _ => None,
        };
        Some((text, end))
    }
}

#[derive(Debug, Deserialize)]
struct EventType {
    #[serde(rename = "type")]
    kind: Option<String>,
}

#[derive(Debug, Deserialize)]
struct LastEvent<'a> {
    #[serde(borrow)]
    response: CompleteResponse<'a>,
}

#[derive(Debug, Deserialize)]
struct CompleteResponse<'a> {
    id: String,
    #[serde(borrow)]
    output: &'a RawValue,
}

fn continuable_response(last: &str) -> Option<ContinuableResponse> {
    let LastEvent { response } = serde_json::from_str(last).ok()?;
    let items = response.output.get().strip_prefix('[')?.strip_suffix(']')?;
    Some(ContinuableResponse {
        id: response.id,
        items: items.trim().to_owned(),
    })
}

fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok());
    response.status().is_success() && kind.is_some_and(|kind| kind.starts_with("text/event-stream"))
}

async fn refusal(response: Response) -> String {
    let status = response.status().as_u16();
    let body = body::read(response.into_body(), REFUSAL_LIMIT).await;
    let body = body.ok().and_then(|body| json::read(&body).ok());
    match body {
        Some(Value::Object(mut body)) if body.contains_key("error") => {
            render_error(status, body.remove("error").unwrap_or_default())
        }
        _ => {
            let message = format!("the request was answered with status {status} and no response");
            error_message(&Error::new(Code::Internal, message))
        }
    }
}

pub(super) fn error_message(error: &Error) -> String {
    let body = error.openai_body()["error"].take();
    render_error(error.code.http_status(), body)
}

fn render_error(status: u16, error: Value) -> String {
    json!({"type": "error", "status": status, "error": error}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sockets::tests::account;
    use futures_util::{FutureExt, stream};
    use std::{convert::Infallible, pin::pin, sync::Arc};
    use tierbar_edge::keys::BODIES;

    fn messages(stream: &str) -> Vec<(String, Option<End>)> {
        let mut events = Events::default();
        let messages = stream.lines().filter_map(|line| events.line(line));
        messages.collect()
    }

    #[test]
    fn an_events_kind_is_in_its_data() {
        let begins = r#"{"type":"response.created","response":{}}"#.to_owned();
        let ends = r#"{"type":"response.completed","response":{}}"#.to_owned();
        let both = [(begins.clone(), None), (ends.clone(), Some(End::Answered))];
        for stream in [
            format!("data: {begins}\n\ndata: {ends}\n\ndata: [DONE]\n\n"),
            format!("data:{begins}\r\n\r\n: waiting\n\ndata:{ends}\n\n"),
            format!("event: response.created\ndata: {begins}\n\nid: 7\nevent: x\ndata: {ends}\n\n"),
        ] {
            assert_eq!(messages(&stream), both, "{stream}");
        }
        let in_lines = "data: {\"type\":\ndata: \"error\"}\n\n";
        let joined = ("{\"type\":\n\"error\"}".to_owned(), Some(End::Failed));
        assert_eq!(messages(in_lines), [joined]);
        let unnamed = "event: response.failed\ndata: {\"response\":{}}\n\ndata: {\"x\":1}\n\n";
        let named = r#"{"response":{},"type":"response.failed"}"#.to_owned();
        assert_eq!(messages(unnamed), [(named, Some(End::Failed))]);
    }

    /// The last message of a stream whose last event has a text of so many bytes, and the items that are kept.
    async fn answer_of(length: usize) -> (String, Option<String>) {
        let begin = r#"data: {"type":"response.completed","response":{"id":"r","output":["#;
        let text = format!("\"{}\"", "a".repeat(length));
        let pieces = [begin.to_owned(), text, "]}}\n\n".to_owned()];
        let router = Router::new().fallback(move || {
            let pieces = stream::iter(pieces.clone().map(Ok::<_, Infallible>));
            let body = Body::from_stream(pieces);
            async move { ([(header::CONTENT_TYPE, "text/event-stream")], body) }
        });
        let (messages, mut sent) = mpsc::channel(2);
        let (account, _folder) = account().await;
        let answer = answer(router, Request::new(Body::empty()), account, messages).await;
        (
            sent.recv().await.unwrap().text,
            answer.map(|answer| answer.items),
        )
    }

    #[tokio::test]
    async fn an_event_that_arrives_in_pieces_is_one_message() {
        let length = 16 << 20;
        let (message, items) = answer_of(length).await;
        assert!(message.starts_with(r#"{"type":"response.completed""#));
        assert_eq!(items.map(|items| items.len()), Some(length + 2));
        let (message, items) = answer_of(EVENT_LIMIT).await;
        assert!(message.contains("more than 17 MiB"), "{message:.99}");
        assert_eq!(items, None);
    }

    /// Answers each request with this event, twice.
    fn twice(event: String) -> Router {
        Router::new().fallback(move || {
            let events = [event.clone(), event.clone()].map(Ok::<_, Infallible>);
            let body = Body::from_stream(stream::iter(events));
            async move { ([(header::CONTENT_TYPE, "text/event-stream")], body) }
        })
    }

    #[tokio::test]
    async fn a_long_event_waits_until_the_one_before_is_read() {
        let long = "a".repeat(LONG_EVENT);
        let event = format!("data: {{\"type\":\"x\",\"text\":\"{long}\"}}\n\n");
        let router = twice(event);
        let (messages, mut sent) = mpsc::channel(4);
        let (account, _folder) = account().await;
        let keys = Arc::clone(&account.keys);
        let request = Request::new(Body::empty());
        let mut answering = pin!(answer(router, request, account, messages));
        for _ in 0..2 {
            assert!(answering.as_mut().now_or_never().is_none());
            assert_eq!(sent.len(), 1);
            let message = sent.recv().await.unwrap();
            // Until it has been sent.
            assert_eq!(keys.held(), COPIES * message.text.len());
            drop(message);
            assert_eq!(keys.held(), 0);
        }
    }

    #[tokio::test]
    async fn several_events_on_their_way_are_charged() {
        let data = format!(r#"{{"type":"{}"}}"#, "a".repeat(CHARGED_EVENT));
        let event = format!("data: {data}\n\n");
        let router = twice(event);
        let (messages, mut sent) = mpsc::channel(4);
        let (account, _folder) = account().await;
        let keys = Arc::clone(&account.keys);
        let answered = answer(router, Request::new(Body::empty()), account, messages).await;
        assert!(answered.is_none());
        assert_eq!(keys.held(), 2 * COPIES * data.len());
        while sent.recv().await.is_some() {}
        assert_eq!(keys.held(), 0);
    }

    #[tokio::test]
    async fn a_long_event_without_room_ends_the_answer() {
        let event = format!("data: {{\"type\":\"{}\"}}\n\n", "a".repeat(LONG_EVENT));
        let router = Router::new().fallback(move || {
            let event = event.clone();
            async move { ([(header::CONTENT_TYPE, "text/event-stream")], event) }
        });
        let (account, _folder) = account().await;
        let mut most = account.keys.weigh(None);
        most.grow(BODIES / 8 * 7).unwrap();
        let (messages, mut sent) = mpsc::channel(2);
        let answered = answer(router, Request::new(Body::empty()), account, messages).await;
        assert!(answered.is_none());
        let refused = sent.recv().await.unwrap().text;
        assert!(refused.contains("overloaded"), "{refused}");
        assert!(sent.recv().await.is_none());
    }

    #[test]
    fn a_continuable_response_has_an_id_and_items() {
        let response = |response: &str| {
            let event = format!(r#"{{"type":"response.completed","response":{response}}}"#);
            continuable_response(&event).map(|response| (response.id, response.items))
        };
        for (output, items) in [("[]", ""), (r#"[ {"a": 1}, 2 ]"#, r#"{"a": 1}, 2"#)] {
            let whole = format!(r#"{{"output": {output}, "id": "r\u0031", "x": null}}"#);
            let expected = ("r1".to_owned(), items.to_owned());
            assert_eq!(response(&whole), Some(expected));
        }
        for incomplete in [
            "null",
            r#"{"id": "r"}"#,
            r#"{"output": []}"#,
            r#"{"id": "r", "output": {}}"#,
        ] {
            assert_eq!(response(incomplete), None, "{incomplete}");
        }
    }
}

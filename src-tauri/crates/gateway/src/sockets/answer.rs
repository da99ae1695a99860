//! The answer to a turn, as the messages that render it.

use super::turn::add;
use axum::{
    Router,
    body::Body,
    http::{Request, header},
    response::Response,
};
use futures_util::StreamExt;
use serde::Deserialize;
use serde_json::{Value, json};
use tierbar_core::{Code, Error, json};
use tierbar_inference::{body, json_edit, lines::Lines};
use tokio::sync::mpsc;
use tower::ServiceExt;

/// In bytes.
const REFUSAL_LIMIT: usize = 1 << 20;
/// Of one event. The last has the whole response, of which there are four copies at a time.
const EVENT_LIMIT: usize = 12 << 20;

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
    messages: mpsc::Sender<String>,
) -> Option<ContinuableResponse> {
    let Ok(response) = router.oneshot(request).await;
    if !is_stream(&response) {
        let refusal = refusal(response).await;
        messages.send(refusal).await.ok()?;
        return None;
    }
    let mut body = response.into_body().into_data_stream();
    let (mut lines, mut events) = (Lines::default(), Events::default());
    while let Some(Ok(bytes)) = body.next().await
        && events.data.len() + lines.pending() <= EVENT_LIMIT
    {
        let complete = lines.complete(&bytes);
        for line in String::from_utf8_lossy(&complete).lines() {
            let Some((text, end)) = events.line(line) else {
                continue;
            };
            let answered = match end {
                Some(End::Answered) => continuable_response(&text),
                _ => None,
            };
            messages.send(text).await.ok()?;
            if end.is_some() {
                return answered;
            }
        }
    }
    let error = Error::new(Code::Internal, "the answer ended without its last event");
    messages.send(error_message(&error)).await.ok()?;
    None
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

fn continuable_response(last: &str) -> Option<ContinuableResponse> {
    let event: Value = json::read(last.as_bytes()).ok()?;
    let response = &event["response"];
    let mut items = String::new();
    for item in response["output"].as_array()? {
        add(&mut items, item);
    }
    Some(ContinuableResponse {
        id: response["id"].as_str()?.to_owned(),
        items,
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
}

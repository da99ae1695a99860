//! The answer to a turn, as the messages that render it.

use super::turn::add;
use axum::{
    Router,
    body::Body,
    http::{Request, header},
    response::Response,
};
use futures_util::StreamExt;
use serde_json::{Value, json};
use tierbar_core::{Code, Error};
use tierbar_inference::{body, lines::Lines};
use tokio::sync::mpsc;
use tower::ServiceExt;

/// In bytes.
const REFUSAL_LIMIT: usize = 1 << 20;

/// A response that can be continued.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) id: String,
    /// Its items as JSON, with commas between them.
    pub(super) items: String,
}

/// Sends the request, and its answer as messages to `messages`. Returns the response, unless it has failed.
pub(super) async fn answer(
    router: Router,
    request: Request<Body>,
    messages: mpsc::Sender<String>,
) -> Option<Answered> {
    let response = match router.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    if !is_stream(&response) {
        let refusal = refusal(response).await;
        messages.send(refusal).await.ok()?;
        return None;
    }
    let mut body = response.into_body().into_data_stream();
    let (mut lines, mut kind, mut last) = (Lines::default(), String::new(), None);
    while let Some(Ok(bytes)) = body.next().await {
        let complete = lines.complete(&bytes);
        for line in String::from_utf8_lossy(&complete).lines() {
            if let Some(name) = line.strip_prefix("event: ") {
                name.clone_into(&mut kind);
            } else if let Some(data) = line.strip_prefix("data: ") {
                if let "response.completed" | "response.incomplete" | "response.failed" = &*kind {
                    last = Some(data.to_owned());
                }
                messages.send(data.to_owned()).await.ok()?;
            }
        }
    }
    let Some(last) = last else {
        let error = Error::new(Code::Internal, "the answer ended without its last event");
        messages.send(error_message(&error)).await.ok()?;
        return None;
    };
    (kind != "response.failed").then(|| answered(&last))?
}

fn answered(last: &str) -> Option<Answered> {
    let event: Value = serde_json::from_str(last).ok()?;
    let response = &event["response"];
    let mut items = String::new();
    for item in response["output"].as_array()? {
        add(&mut items, item);
    }
    Some(Answered {
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
    let body = body
        .ok()
        .and_then(|body| serde_json::from_slice(&body).ok());
    match body {
        Some(Value::Object(mut body)) if body.contains_key("error") => {
            rendered(status, body.remove("error").unwrap_or_default())
        }
        _ => {
            let message = format!("the request was answered with status {status} and no response");
            error_message(&Error::new(Code::Internal, message))
        }
    }
}

/// Renders an error as a message.
pub(super) fn error_message(error: &Error) -> String {
    let body = error.openai_body()["error"].take();
    rendered(error.code.http_status(), body)
}

fn rendered(status: u16, error: Value) -> String {
    json!({"type": "error", "status": status, "error": error}).to_string()
}

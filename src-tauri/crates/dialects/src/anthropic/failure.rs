//! An error in Anthropic's form.

use serde_json::{Value, json};
use tierbar_core::{Code, Error};

/// Anthropic's API reference, "Errors"; `code`, `hint` and the figures are additions. Its clients show the message alone: what to do is a
/// part of it.
pub(crate) fn error_body(error: &Error, request_id: Option<&str>) -> Value {
    let mut rendered = error.openai_body()["error"].take();
    if let Some(rendered) = rendered.as_object_mut() {
        rendered.insert("type".to_owned(), json!(kind(error.code.http_status())));
        rendered.insert("message".to_owned(), json!(message(error)));
        rendered.shift_remove("param");
    }
    json!({"type": "error", "error": rendered, "request_id": request_id})
}

/// A prompt that is too long has the message of Anthropic's servers, which Claude Code knows.
fn message(error: &Error) -> String {
    let figure = |name: &str| error.details.get(name).and_then(Value::as_u64);
    let figures = figure("prompt_tokens").zip(figure("context_tokens"));
    match figures.filter(|_| error.code == Code::ContextExceeded) {
        Some((prompt, context)) => {
            let message = format!("prompt is too long: {prompt} tokens > {context} maximum");
            let error = Error {
                message,
                ..error.clone()
            };
            error.to_text("; ")
        }
        None => error.to_text("; "),
    }
}

fn kind(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        503 => "overloaded_error",
        504 => "timeout_error",
        _ => "api_error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_keeps_its_code_and_figures() {
        let error = Error::new(Code::ContextExceeded, "too long").detail("prompt_tokens", 5000);
        let body = error_body(&error, Some("req_1"));
        assert_eq!(body["request_id"], "req_1");
        assert_eq!(body["type"], "error");
        assert_eq!(
            body["error"],
            json!({"message": "too long", "type": "invalid_request_error", "code": "context_length_exceeded", "prompt_tokens": 5000})
        );
        let reply = error_body(
            &error.detail("context_tokens", 4096).hint("shorten it"),
            None,
        );
        assert_eq!(
            reply["error"]["message"],
            "prompt is too long: 5000 tokens > 4096 maximum; shorten it"
        );
    }
}

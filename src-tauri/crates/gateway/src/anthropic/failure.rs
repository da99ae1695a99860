//! An error in Anthropic's words.

use serde_json::{Value, json};
use tierbar_core::Error;

/// Anthropic's API reference, "Errors"; `code`, `hint` and the figures are additions.
pub(crate) fn error_body(error: &Error) -> Value {
    let mut told = error.openai_body()["error"].take();
    if let Some(told) = told.as_object_mut() {
        told.insert("type".to_owned(), json!(kind(error.code.http_status())));
        told.shift_remove("param");
    }
    json!({"type": "error", "error": told, "request_id": null})
}

fn kind(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
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
    use tierbar_core::Code;

    #[test]
    fn an_error_keeps_its_code_and_figures() {
        let error = Error::new(Code::ContextExceeded, "too long").detail("prompt_tokens", 5000);
        let body = error_body(&error);
        assert_eq!(body["type"], "error");
        assert_eq!(
            body["error"],
            json!({"message": "too long", "type": "invalid_request_error", "code": "context_exceeded", "prompt_tokens": 5000})
        );
    }
}

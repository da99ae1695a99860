//! An error of Anthropic's in OpenAI's words.

use crate::wire;
use serde_json::{Map, Value, json};
use tierbar_core::Code;

/// The body of a refusal, or the data of an `error` event. Its other fields stay, such as a Tierbar's own `code`, hint and figures.
pub fn openai(rendered: &[u8]) -> Value {
    let mut rendered = wire::failure(rendered);
    let request = rendered["request_id"].take();
    let mut error = match rendered["error"].take() {
        Value::Object(error) => error,
        // What stands before the server, such as a proxy, has words of its own.
        Value::String(message) => Map::from_iter([("message".to_owned(), message.into())]),
        _ => Map::new(),
    };
    let message = error.get("message").and_then(Value::as_str);
    let message = message
        .unwrap_or("the model's server refused the request without an error message")
        .to_owned();
    let kind = error.get("type").and_then(Value::as_str);
    let kind = kind.unwrap_or("api_error").to_owned();
    error.insert("message".to_owned(), message.as_str().into());
    error.insert("type".to_owned(), openai_type(&kind).into());
    error.entry("param").or_insert(Value::Null);
    let code = error.entry("code").or_insert(Value::Null);
    if code.is_null() {
        // Only its message distinguishes this one.
        let too_long = message.starts_with("prompt is too long");
        *code = if too_long {
            Code::ContextExceeded.as_str().into()
        } else {
            kind.into()
        };
    }
    if request.is_string() {
        error.insert("request_id".to_owned(), request);
    }
    json!({"error": error})
}

fn openai_type(kind: &str) -> &str {
    match kind {
        "authentication_error" | "permission_error" | "not_found_error" | "rate_limit_error" => {
            kind
        }
        "invalid_request_error" | "request_too_large" | "billing_error" => "invalid_request_error",
        _ => "server_error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_keeps_its_message() {
        let reply = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}, "request_id": "req_1"});
        assert_eq!(
            openai(reply.to_string().as_bytes()),
            json!({"error": {"type": "server_error", "message": "Overloaded", "param": null, "code": "overloaded_error", "request_id": "req_1"}})
        );
        let long = json!({"error": {"type": "invalid_request_error", "message": "prompt is too long: 9 tokens > 8 maximum"}});
        assert_eq!(
            openai(long.to_string().as_bytes())["error"]["code"],
            "context_length_exceeded"
        );
        assert_eq!(openai(b"{\"error\":\"no\"}")["error"]["message"], "no");
        let nothing = openai(b"<html>");
        assert!(
            nothing["error"]["message"]
                .as_str()
                .unwrap()
                .contains("without an error message")
        );
    }
}

//! An error in Ollama's form.

use serde_json::{Value, json};
use tierbar_core::{Code, Error};

/// Ollama and its clients show only the message, so the hint is a part of it. `code`, `hint` and the figures are additions.
pub(crate) fn error_body(error: &Error) -> Value {
    let mut rendered = error.openai_body()["error"].take();
    let message = match error.code {
        // Agents look for it, and its clients keep nothing of a body but the message.
        Code::ContextExceeded => format!("{} ({})", error.message, error.code.as_str()),
        _ => error.message.clone(),
    };
    let shown = Error {
        message,
        ..error.clone()
    };
    let mut body = json!({"error": shown.to_text("; ")});
    if let (Some(rendered), Some(body)) = (rendered.as_object_mut(), body.as_object_mut()) {
        for part in ["message", "type", "param"] {
            rendered.shift_remove(part);
        }
        for (name, value) in std::mem::take(rendered) {
            body.entry(name).or_insert(value);
        }
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_its_message_with_its_code_and_figures_beside_it() {
        let error = Error::new(Code::ContextExceeded, "too long").detail("prompt_tokens", 5000);
        assert_eq!(
            error_body(&error.hint("shorten it")),
            json!({"error": "too long (context_length_exceeded); shorten it", "code": "context_length_exceeded", "hint": "shorten it", "prompt_tokens": 5000})
        );
    }
}

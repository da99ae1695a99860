//! A whole answer as the events of a stream, for servers that do not stream.

use axum::body::Bytes;
use serde_json::{Map, Value};

/// One event with all of it, and the last one.
pub(crate) fn as_events(answer: &[u8]) -> Bytes {
    let mut answer: Map<String, Value> = serde_json::from_slice(answer).unwrap_or_default();
    let choices = answer.get_mut("choices").and_then(Value::as_array_mut);
    let mut is_chat = false;
    for (index, choice) in choices.into_iter().flatten().enumerate() {
        let Some(choice) = choice.as_object_mut() else {
            continue;
        };
        choice.entry("index").or_insert(index.into());
        if let Some(mut message) = choice.remove("message") {
            is_chat = true;
            number(&mut message);
            choice.insert("delta".to_owned(), message);
        }
    }
    if is_chat {
        answer.insert("object".to_owned(), "chat.completion.chunk".into());
    }
    let event = Value::Object(answer);
    format!("data: {event}\n\ndata: [DONE]\n\n").into()
}

/// In a stream a call has a number.
fn number(message: &mut Value) {
    let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut);
    for (number, call) in calls.into_iter().flatten().enumerate() {
        if let Some(call) = call.as_object_mut() {
            call.entry("index").or_insert(number.into());
        }
    }
}

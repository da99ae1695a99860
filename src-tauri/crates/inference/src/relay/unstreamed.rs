//! A whole answer as the events of a stream, for servers that do not stream.

use bytes::Bytes;
use serde_json::{Map, Value, json};

/// One event with all of it, and the last one.
pub(crate) fn as_events(answer: &[u8]) -> Bytes {
    let event = as_chunk(answer);
    format!("data: {event}\n\ndata: [DONE]\n\n").into()
}

/// A whole answer as one chunk.
pub(crate) fn as_chunk(answer: &[u8]) -> Value {
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
    Value::Object(answer)
}

/// A whole response of OpenAI's as its last event.
pub(crate) fn as_response_events(response: &[u8]) -> Bytes {
    let response: Value = serde_json::from_slice(response).unwrap_or_default();
    let status = response["status"].as_str().unwrap_or("completed");
    let kind = format!("response.{status}");
    let event = json!({"type": kind, "sequence_number": 0, "response": response});
    format!("event: {kind}\ndata: {event}\n\n").into()
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

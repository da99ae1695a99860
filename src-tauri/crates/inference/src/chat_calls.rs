//! Calls of tools in OpenAI's form as all clients read them. Some servers write an object where its text belongs, number no calls, and end
//! behind them as if there were none. The same of a text without its quotes.

use super::{calls::Calls, wire::ToolCall};
use bytes::Bytes;
use memchr::memmem;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use tierbar_core::json::{self, repair::repair};

/// No request asks for so many answers at once.
const MOST_CHOICES: usize = 128;

/// The calls of a stream's answers, by the answer's number.
#[derive(Debug, Default)]
pub(crate) struct StreamCalls(BTreeMap<u64, Calls>);

impl StreamCalls {
    pub(crate) fn has_any(&self) -> bool {
        !self.0.is_empty()
    }

    /// Returns whether it has changed the event.
    pub(crate) fn repair(&mut self, event: &mut Map<String, Value>) -> bool {
        let Some(Value::Array(choices)) = event.get_mut("choices") else {
            event.insert("choices".to_owned(), Value::Array(Vec::new()));
            return true;
        };
        let mut changed = false;
        for choice in choices.iter_mut().filter(|choice| choice.is_object()) {
            let index = choice["index"].as_u64().unwrap_or(0);
            if let Some(content) = choice.pointer_mut("/delta/content") {
                changed |= write_text(content);
            }
            let pieces = choice.pointer_mut("/delta/tool_calls");
            for piece in pieces.and_then(Value::as_array_mut).into_iter().flatten() {
                if self.0.len() < MOST_CHOICES || self.0.contains_key(&index) {
                    changed |= repair_piece(piece, self.0.entry(index).or_default());
                }
            }
            changed |= self.0.contains_key(&index) && repair_end(choice);
        }
        changed
    }
}

/// Repairs a whole answer of another program's server.
pub(crate) fn repair_whole(mut body: Bytes) -> Bytes {
    if let Some(repaired) = repair(&body) {
        body = repaired.into();
    }
    if memmem::find(&body, b"\"tool_calls\"").is_none() {
        return body;
    }
    let Ok(mut answer) = json::read::<Value>(&body) else {
        return body;
    };
    let mut changed = false;
    let choices = answer.get_mut("choices").and_then(Value::as_array_mut);
    for choice in choices.into_iter().flatten() {
        let calls = choice.pointer_mut("/message/tool_calls");
        let calls = calls.and_then(Value::as_array_mut);
        let Some(calls) = calls.filter(|calls| !calls.is_empty()) else {
            continue;
        };
        for call in calls.iter_mut() {
            changed |= write_arguments(call);
        }
        changed |= repair_end(choice);
    }
    match changed {
        true => answer.to_string().into(),
        false => body,
    }
}

fn repair_piece(piece: &mut Value, calls: &mut Calls) -> bool {
    let read = ToolCall::deserialize(&*piece).ok();
    let number = read.and_then(|piece| calls.number(&piece));
    let mut changed = write_arguments(piece);
    if let (Some(number), Some(piece)) = (number, piece.as_object_mut())
        && piece.get("index") != Some(&Value::from(number))
    {
        piece.insert("index".to_owned(), number.into());
        changed = true;
    }
    changed
}

/// A number without the quotes of a text is one.
fn write_text(content: &mut Value) -> bool {
    let is_plain = content.is_number() || content.is_boolean();
    if is_plain {
        *content = content.to_string().into();
    }
    is_plain
}

fn write_arguments(call: &mut Value) -> bool {
    let arguments = call.pointer_mut("/function/arguments");
    let Some(arguments) = arguments.filter(|json| !json.is_string() && !json.is_null()) else {
        return false;
    };
    *arguments = arguments.to_string().into();
    true
}

fn repair_end(choice: &mut Value) -> bool {
    let reason = choice.get_mut("finish_reason");
    let Some(reason) = reason.filter(|reason| *reason == "stop") else {
        return false;
    };
    *reason = "tool_calls".into();
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn delta(calls: Value) -> Value {
        json!({"choices": [{"delta": {"tool_calls": calls}, "finish_reason": null}]})
    }

    #[test]
    fn calls_of_a_stream_are_numbered_and_their_arguments_texts() {
        let mut calls = StreamCalls::default();
        let mut repaired = |mut event: Value| {
            let changed = calls.repair(event.as_object_mut().unwrap());
            changed.then_some(event)
        };
        let call = |id: &str, arguments: Value| json!({"id": id, "function": {"name": "look", "arguments": arguments}});
        let ends = |reason: &str| json!({"choices": [{"delta": {}, "finish_reason": reason}]});
        assert_eq!(repaired(ends("stop")), None);
        let event = repaired(delta(json!([
            call("a", json!({"at": 1})),
            call("b", json!("{}"))
        ])));
        let event = event.unwrap();
        let found = &event["choices"][0]["delta"]["tool_calls"];
        for (number, id, arguments) in [(0, "a", "{\"at\":1}"), (1, "b", "{}")] {
            let call = &found[number];
            assert_eq!(call["index"], number);
            assert_eq!(call["id"], id);
            assert_eq!(call["function"]["arguments"], arguments);
        }
        assert_eq!(
            repaired(delta(json!([{"index": 2, "function": {"arguments": "x"}}]))),
            None
        );
        for odd in [json!(["a", null]), json!([{"function": 7}]), json!("a")] {
            repaired(delta(odd));
        }
        assert_eq!(repaired(ends("length")), None);
        assert_eq!(repaired(ends("stop")).unwrap(), ends("tool_calls"));
        let usage = json!({"usage": {"prompt_tokens": 1}});
        assert_eq!(repaired(usage).unwrap()["choices"], json!([]));
    }

    #[test]
    fn a_whole_answer_with_calls_ends_for_them() {
        let whole = |content: &str, calls: Value, reason: &str| {
            let message = json!({"content": content, "tool_calls": calls});
            json!({"choices": [{"message": message, "finish_reason": reason}]})
        };
        let call = |arguments: Value| json!([{"id": "a", "function": {"name": "look", "arguments": arguments}}]);
        let repaired = |answer: &Value| -> Value {
            serde_json::from_slice(&repair_whole(answer.to_string().into())).unwrap()
        };
        let odd = whole("a", call(json!({"at": 1})), "stop");
        assert_eq!(
            repaired(&odd),
            whole("a", call(json!("{\"at\":1}")), "tool_calls")
        );
        for same in [
            whole("a", json!([]), "stop"),
            whole("a", json!(null), "stop"),
            whole("a", call(json!("{}")), "length"),
            json!({"data": "\"tool_calls\""}),
        ] {
            assert_eq!(repaired(&same), same);
        }
        let cut = br#"{"choices":[{"message":{"content":"a\ud83d"}}]}"#;
        let read: Value = serde_json::from_slice(&repair_whole(Bytes::from_static(cut))).unwrap();
        assert_eq!(read["choices"][0]["message"]["content"], "a\u{fffd}");
    }
}

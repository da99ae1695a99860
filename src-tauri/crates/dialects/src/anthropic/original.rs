//! A request as it came, for servers that speak the dialect.

use super::answer::SIGNATURE;
use axum::body::Bytes;
use serde_json::{Value, json};
use tierbar_core::Error;
use tierbar_inference::original::{Form, Original};

/// `path`: where the server takes it. Thoughts of models that do not sign them are left out, since its server would refuse these.
pub(super) fn read(path: &'static str, bytes: Bytes) -> Result<Original, Error> {
    let mut original = Original::read(Form::Messages, path, bytes)?;
    if original.contains(&format!("\"{SIGNATURE}\"")) {
        drop_unsigned(&mut original);
    }
    Ok(original)
}

/// Returns the model that it names; empty for none.
pub(super) fn model(original: &Original) -> String {
    let model = original.value("model");
    let model = model.as_ref().and_then(Value::as_str);
    model.unwrap_or_default().to_owned()
}

fn drop_unsigned(original: &mut Original) {
    let Some(Value::Array(mut messages)) = original.value("messages") else {
        return;
    };
    let mut dropped_from = None;
    for (index, message) in messages.iter_mut().enumerate() {
        let Some(Value::Array(blocks)) = message.get_mut("content") else {
            continue;
        };
        let before = blocks.len();
        blocks.retain(|block| block["type"] != "thinking" || block["signature"] != SIGNATURE);
        if blocks.len() < before {
            dropped_from = Some(index);
        }
    }
    let Some(last) = dropped_from else {
        return;
    };
    // A model that has thought before it called a tool must go on from these thoughts, or without any.
    let goes_on = last + 2 == messages.len() && has_result(&messages[last + 1]);
    messages.retain(|message| message["content"] != json!([]));
    let mut changes = vec![("messages", Some(messages.into()))];
    let thinking = original.value("thinking").unwrap_or_default();
    if goes_on && thinking["type"] == "enabled" {
        changes.push(("thinking", None));
    }
    original.change(&changes);
}

fn has_result(message: &Value) -> bool {
    let mut blocks = message["content"].as_array().into_iter().flatten();
    blocks.any(|block| block["type"] == "tool_result")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierbar_inference::clouds::anthropic::MESSAGES;

    fn sent(request: &Value) -> Value {
        let original = read(MESSAGES, request.to_string().into()).unwrap();
        serde_json::from_slice(original.bytes()).unwrap()
    }

    #[test]
    fn thoughts_of_unsigning_models_are_left_out() {
        let thought =
            |signature: &str| json!({"type": "thinking", "thinking": "hm", "signature": signature});
        let call = json!({"type": "tool_use", "id": "a", "name": "look", "input": {}});
        let result =
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]});
        let request = |blocks: Value, more: Value| {
            json!({"model": "m", "thinking": {"type": "enabled", "budget_tokens": 1024}, "messages": [
                {"role": "user", "content": "unsigned"}, {"role": "assistant", "content": blocks}, more,
            ]})
        };
        let signed = request(json!([thought("c2ln"), call]), result.clone());
        assert_eq!(sent(&signed), signed);
        let mut without = request(json!([call]), result.clone());
        without.as_object_mut().unwrap().remove("thinking");
        assert_eq!(
            sent(&request(json!([thought("unsigned"), call]), result)),
            without
        );
        // Past a turn of the user's, the model thinks anew.
        let said = json!({"role": "user", "content": "\"unsigned\""});
        let earlier = request(json!([call]), said.clone());
        assert_eq!(
            sent(&request(json!([thought("unsigned"), call]), said.clone())),
            earlier
        );
        let alone = sent(&request(json!([thought("unsigned")]), said));
        assert_eq!(alone["messages"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn a_field_that_stands_there_twice_is_refused() {
        let twice = br#"{"max_tokens": 1, "max_tokens": 1000000}"#;
        let error = read(MESSAGES, twice.as_slice().into()).unwrap_err();
        assert!(
            error.message.ends_with("duplicate field `max_tokens`"),
            "{error}"
        );
    }
}

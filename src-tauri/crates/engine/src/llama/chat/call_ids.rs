//! The ids of calls, for templates that refuse any but Mistral's: nine letters or digits.

use serde_json::{Value, json};
use std::collections::BTreeMap;

pub(super) const LENGTH: usize = 9;

/// Gives calls and their results ids of that length, where they have others. The same conversation always gets the same.
pub(super) fn shorten(messages: &mut Value) {
    let mut ids = BTreeMap::new();
    for message in messages.as_array_mut().into_iter().flatten() {
        for call in message["tool_calls"].as_array_mut().into_iter().flatten() {
            replace_id(call.get_mut("id"), &mut ids);
        }
        replace_id(message.get_mut("tool_call_id"), &mut ids);
    }
}

fn replace_id(id: Option<&mut Value>, ids: &mut BTreeMap<String, String>) {
    let Some(id) = id else { return };
    let Some(sent) = id.as_str() else { return };
    if sent.len() == LENGTH && sent.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return;
    }
    let number = ids.len();
    let short = ids
        .entry(sent.to_owned())
        .or_insert_with(|| format!("call{number:05}"));
    *id = json!(short);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_results_get_the_same_short_ids() {
        let call = |id: &str| json!({"id": id, "type": "function"});
        let mut messages = json!([
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "tool_calls": [call("call_long"), call("a1b2c3d4e"), call("toolu_1")]},
            {"role": "tool", "tool_call_id": "toolu_1"},
            {"role": "tool", "tool_call_id": "a1b2c3d4e"},
            {"role": "tool", "tool_call_id": "call_long"},
            {"role": "tool", "tool_call_id": null},
        ]);
        shorten(&mut messages);
        let called: Vec<_> = (0..3)
            .map(|at| &messages[1]["tool_calls"][at]["id"])
            .collect();
        assert_eq!(called, ["call00000", "a1b2c3d4e", "call00001"]);
        let answered: Vec<_> = (2..6).map(|at| &messages[at]["tool_call_id"]).collect();
        assert_eq!(
            answered,
            [
                &json!("call00001"),
                &json!("a1b2c3d4e"),
                &json!("call00000"),
                &Value::Null
            ]
        );
    }
}

//! OpenAI's older fields for tools, `functions` and `function_call`, as the newer ones.

use crate::bad;
use serde_json::{Map, Value, json};
use tierbar_core::Error;

/// Returns the tools and the choice that older fields stand for.
///
/// # Errors
/// `BadRequest` naming a field of the wrong type.
pub(super) fn tools_of_functions(
    functions: &Value,
    choice: Option<&Value>,
) -> Result<(Vec<Value>, Option<Value>), Error> {
    let functions = functions
        .as_array()
        .ok_or_else(|| bad("`functions` must be a list"))?;
    let tool = |function: &Value| json!({"type": "function", "function": function});
    let choice = match choice {
        None | Some(Value::Null) => None,
        Some(mode @ Value::String(_)) => Some(mode.clone()),
        Some(one) if one["name"].is_string() => {
            let name = &one["name"];
            if !functions.iter().any(|function| function["name"] == *name) {
                return Err(bad(format!(
                    "`function_call` names {name}, which is not among the `functions`"
                ))
                .hint("name one of the `functions`"));
            }
            Some(json!({"type": "function", "function": {"name": one["name"]}}))
        }
        Some(_) => {
            return Err(bad("`function_call` must be auto, none or {\"name\": …}"));
        }
    };
    Ok((functions.iter().map(tool).collect(), choice))
}

/// Turns calls and results in the older form into the newer one. One answer had one call, and its result followed it.
pub(super) fn convert_messages(messages: &mut [Value]) {
    let mut calls = 0;
    for message in messages {
        let Some(fields) = message.as_object_mut() else {
            continue;
        };
        if fields.get("role").is_some_and(|role| role == "function") {
            fields.insert("role".to_owned(), "tool".into());
            fields.insert("tool_call_id".to_owned(), call_id(calls).into());
        }
        match fields.shift_remove("function_call") {
            Some(function @ Value::Object(_)) if !fields.contains_key("tool_calls") => {
                calls += 1;
                let call = json!({"id": call_id(calls), "type": "function", "function": function});
                fields.insert("tool_calls".to_owned(), json!([call]));
            }
            _ => {}
        }
    }
}

fn call_id(number: usize) -> String {
    format!("call_{number}")
}

/// Returns a message or a delta with its call in the older form.
pub(crate) fn with_function_call(mut message: Value) -> Value {
    let Some(fields) = message.as_object_mut() else {
        return message;
    };
    let calls = fields.shift_remove("tool_calls");
    if let Some(call) = calls.as_ref().and_then(|calls| calls.get(0)) {
        let function: Map<_, _> = call["function"].as_object().cloned().unwrap_or_default();
        fields.insert("function_call".to_owned(), function.into());
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_fields_become_newer_ones() {
        let look = json!({"name": "look", "parameters": {"type": "object"}});
        let (tools, choice) =
            tools_of_functions(&json!([look]), Some(&json!({"name": "look"}))).unwrap();
        assert_eq!(tools, [json!({"type": "function", "function": look})]);
        let named = json!({"type": "function", "function": {"name": "look"}});
        assert_eq!(choice, Some(named));
        for (functions, choice) in [(json!({}), Value::Null), (json!([]), json!(7))] {
            assert!(super::tools_of_functions(&functions, Some(&choice)).is_err());
        }
        let error =
            super::tools_of_functions(&json!([look]), Some(&json!({"name": "gone"}))).unwrap_err();
        assert!(
            error.message.starts_with("`function_call` names \"gone\""),
            "{error}"
        );

        let call = json!({"name": "look", "arguments": "{}"});
        let mut conversation = [
            json!({"role": "assistant", "content": null, "function_call": call}),
            json!({"role": "function", "name": "look", "content": "a hat"}),
            json!({"role": "assistant", "content": "A hat.", "function_call": null}),
        ];
        convert_messages(&mut conversation);
        let id = &conversation[0]["tool_calls"][0]["id"];
        assert_eq!(conversation[0]["tool_calls"][0]["function"], call);
        assert_eq!(conversation[1]["role"], "tool");
        assert_eq!(&conversation[1]["tool_call_id"], id);
        assert_eq!(
            conversation[2],
            json!({"role": "assistant", "content": "A hat."})
        );
    }

    #[test]
    fn a_call_is_returned_in_the_older_form() {
        let function = json!({"name": "look", "arguments": "{}"});
        let message =
            json!({"role": "assistant", "tool_calls": [{"id": "a", "function": function}]});
        let expected = json!({"role": "assistant", "function_call": function});
        assert_eq!(with_function_call(message), expected);
        assert_eq!(
            with_function_call(json!({"content": "Hi"})),
            json!({"content": "Hi"})
        );
    }
}

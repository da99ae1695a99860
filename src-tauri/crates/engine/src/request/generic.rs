//! Tools for a template that has no place for them: the functions are described in the system message, and calls and their
//! results are text in the messages. The shim's generic form constrains and reads the answer.

use serde_json::{Map, Value, json};
use tierbar_core::json;
use tierbar_grammar::OfferedTools;

/// Whether a conversation has calls or results, which such a template would drop or refuse.
pub(super) fn has_calls(messages: &[Value]) -> bool {
    let is_about_calls =
        |message: &Value| message["role"] == "tool" || message["tool_calls"].is_array();
    messages.iter().any(is_about_calls)
}

/// Returns the messages with the functions, calls and results as text.
/// `form`: the JSON schema of an answer that is no call.
pub(super) fn rewrite_messages(
    messages: &[Value],
    tools: &OfferedTools,
    form: Option<&Value>,
) -> Vec<Value> {
    let mut rewritten: Vec<Value> = Vec::with_capacity(messages.len() + 1);
    let mut after_result = false;
    for message in messages {
        let is_result = message["role"] == "tool";
        let message = if is_result {
            result_as_text(message)
        } else {
            with_calls_as_text(message)
        };
        // Many templates have the roles alternate.
        let joins = after_result && message["role"] == "user";
        after_result = is_result;
        match rewritten.last_mut() {
            Some(last) if joins => append_paragraph(last, &message["content"]),
            _ => rewritten.push(message),
        }
    }
    if tools.may_be_called() {
        let words = json!(tool_instructions(tools, form));
        match rewritten.first_mut() {
            Some(first) if matches!(first["role"].as_str(), Some("system" | "developer")) => {
                append_paragraph(first, &words);
            }
            _ => rewritten.insert(0, json!({"role": "system", "content": words})),
        }
    }
    rewritten
}

fn tool_instructions(tools: &OfferedTools, form: Option<&Value>) -> String {
    let mut words = "You can call these functions:\n".to_owned();
    for tool in &tools.offered {
        let function = &tool["function"];
        let mut line = Map::new();
        for key in ["name", "description", "parameters"] {
            if let Some(value) = function.get(key) {
                line.insert(key.to_owned(), shorten_schema(value));
            }
        }
        words += &Value::Object(line).to_string();
        words.push('\n');
    }
    words += match (tools.choice, tools.parallel) {
        ("required", true) => "Answer only with calls, each in this form:",
        ("required", false) => "Answer only with one call, in this form:",
        (_, true) => "To call functions, answer with calls, each in this form:",
        (_, false) => "To call a function, answer with one call in this form:",
    };
    words += "\n<tool_call>{\"name\": \"…\", \"arguments\": {…}}</tool_call>";
    if let Some(form) = form {
        words += "\nOtherwise, answer only with JSON that follows this schema:\n";
        words += &shorten_schema(form).to_string();
    }
    words
}

/// A schema without what tells a model nothing.
fn shorten_schema(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let says = |(key, value): &(&String, &Value)| match key.as_str() {
                "$schema" | "$id" | "title" => !value.is_string(),
                "additionalProperties" => *value != &json!(false),
                _ => true,
            };
            let fields = fields.iter().filter(says);
            fields
                .map(|(key, value)| (key.clone(), shorten_schema(value)))
                .collect()
        }
        Value::Array(items) => items.iter().map(shorten_schema).collect(),
        other => other.clone(),
    }
}

fn result_as_text(message: &Value) -> Value {
    let mut result = json!({"role": "user", "content": "<tool_response>\n"});
    match &message["content"] {
        Value::Null => {}
        content => append_content(&mut result["content"], content),
    }
    append_content(&mut result["content"], &json!("\n</tool_response>"));
    result
}

fn with_calls_as_text(message: &Value) -> Value {
    let mut message = message.clone();
    let Some(fields) = message.as_object_mut() else {
        return message;
    };
    let Some(Value::Array(calls)) = fields.shift_remove("tool_calls") else {
        return message;
    };
    let calls: Vec<_> = calls.iter().map(call).collect();
    append_paragraph(&mut message, &json!(calls.join("\n")));
    message
}

fn call(call: &Value) -> String {
    let function = &call["function"];
    let sent = &function["arguments"];
    let arguments = sent
        .as_str()
        .and_then(|text| json::read(text.as_bytes()).ok());
    let arguments = arguments.unwrap_or_else(|| sent.clone());
    let call = json!({"name": function["name"], "arguments": arguments});
    format!("<tool_call>{call}</tool_call>")
}

/// Adds content as a paragraph of its own.
fn append_paragraph(message: &mut Value, more: &Value) {
    let content = &mut message["content"];
    match content {
        Value::Null => *content = more.clone(),
        Value::String(text) if text.is_empty() => *content = more.clone(),
        Value::Array(parts) if parts.is_empty() => *content = more.clone(),
        _ => {
            append_content(content, &json!("\n\n"));
            append_content(content, more);
        }
    }
}

/// Adds content directly behind.
fn append_content(content: &mut Value, more: &Value) {
    let parts = |content: &Value| match content {
        Value::Array(parts) => parts.clone(),
        text => vec![json!({"type": "text", "text": text})],
    };
    match (&mut *content, more) {
        (Value::String(text), Value::String(more)) => text.push_str(more),
        (before, more) => {
            let all = [parts(before), parts(more)].concat();
            *content = json!(all);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(choice: &str, parallel: bool) -> OfferedTools {
        let parameters = json!({"$schema": "x", "type": "object", "title": "Look", "additionalProperties": false,
                                "properties": {"title": {"type": "string", "title": "Title"}}});
        let look = json!({"type": "function", "function": {"name": "look", "parameters": parameters, "strict": true}});
        OfferedTools::read(&[look], Some(&json!(choice)), Some(parallel)).unwrap()
    }

    #[test]
    fn functions_are_described_in_the_system_message() {
        let question = json!({"role": "user", "content": "Hi"});
        let line = r#"{"name":"look","parameters":{"type":"object","properties":{"title":{"type":"string"}}}}"#;
        let alone = rewrite_messages(
            std::slice::from_ref(&question),
            &tools("required", false),
            None,
        );
        assert_eq!(
            (&alone[0]["role"], &alone[1]),
            (&json!("system"), &question)
        );
        let words = alone[0]["content"].as_str().unwrap();
        assert!(words.contains(line), "{words}");
        assert!(words.contains("only with one call"), "{words}");
        for system in [
            json!("Be brief."),
            json!([{"type": "text", "text": "Be brief."}]),
        ] {
            let system = json!({"role": "developer", "content": system});
            let both = rewrite_messages(&[system, question.clone()], &tools("auto", true), None);
            assert_eq!(both.len(), 2);
            let words = both[0]["content"].to_string();
            assert!(
                words.contains("Be brief.") && words.contains("To call functions"),
                "{words}"
            );
        }
        let none = rewrite_messages(std::slice::from_ref(&question), &tools("none", true), None);
        assert_eq!(none, std::slice::from_ref(&question));
        let form = json!({"type": "object", "title": "Answer"});
        let both = rewrite_messages(&[question], &tools("auto", false), Some(&form));
        let words = both[0]["content"].as_str().unwrap();
        assert!(
            words.ends_with("follows this schema:\n{\"type\":\"object\"}"),
            "{words}"
        );
    }

    #[test]
    fn calls_and_results_are_text() {
        let call = |name: &str| json!({"id": name, "type": "function", "function": {"name": name, "arguments": "{\"at\": 1}"}});
        let picture = json!([{"type": "media_marker", "text": "<img>"}]);
        let messages = [
            json!({"role": "user", "content": "Hi"}),
            json!({"role": "assistant", "content": "Well.", "tool_calls": [call("look"), call("wait")]}),
            json!({"role": "tool", "tool_call_id": "look", "content": "a hat"}),
            json!({"role": "tool", "tool_call_id": "wait", "content": null}),
            json!({"role": "user", "content": picture}),
            json!({"role": "assistant", "content": null, "tool_calls": [call("look")]}),
            json!({"role": "tool", "content": "a"}),
        ];
        assert!(has_calls(&messages) && !has_calls(&messages[..1]));
        let rewritten = rewrite_messages(
            &messages,
            &OfferedTools::read(&[], None, None).unwrap(),
            None,
        );
        let roles: Vec<_> = rewritten.iter().map(|message| &message["role"]).collect();
        assert_eq!(roles, ["user", "assistant", "user", "assistant", "user"]);
        let called = |name: &str| {
            format!("<tool_call>{{\"name\":\"{name}\",\"arguments\":{{\"at\":1}}}}</tool_call>")
        };
        let both = format!("Well.\n\n{}\n{}", called("look"), called("wait"));
        assert_eq!(rewritten[1], json!({"role": "assistant", "content": both}));
        let results =
            "<tool_response>\na hat\n</tool_response>\n\n<tool_response>\n\n</tool_response>\n\n";
        let joined = json!([{"type": "text", "text": results}, picture[0]]);
        assert_eq!(rewritten[2]["content"], joined);
        assert_eq!(rewritten[3]["content"], called("look"));
        assert_eq!(
            rewritten[4]["content"],
            "<tool_response>\na\n</tool_response>"
        );
    }
}

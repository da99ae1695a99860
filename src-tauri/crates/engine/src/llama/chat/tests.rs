//! Forced calls, in the forms of real templates and in the generic one.

use super::*;
use crate::{
    llama::constraint::Constraint,
    testing::{cache, model},
};

const GEMMA_4: &str = "google-gemma-4-31B-it.jinja";
const QWEN_3: &str = "Qwen-Qwen3-0.6B.jinja";
const QWEN_3_5: &str = "Qwen3.5-4B.jinja";

fn template(name: &str) -> ChatTemplate {
    let path = cache().join("templates").join(name);
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}: run `make setup`", path.display()));
    ChatTemplate::new(model(), Some(&text)).unwrap()
}

fn request(other: &str, more: &Value) -> Value {
    let tool = |name: &str| {
        let unit = json!({"type": "string", "enum": ["C", "F"]});
        let parameters =
            json!({"type": "object", "properties": {"unit": unit}, "required": ["unit"]});
        json!({"type": "function", "function": {"name": name, "description": "", "parameters": parameters}})
    };
    let mut request = json!({
        "messages": [{"role": "user", "content": "Hi"}],
        "tools": [tool("look"), tool(other)],
        "tool_choice": "required",
        "parallel_tool_calls": true,
    });
    for (key, value) in more.as_object().unwrap() {
        request[key] = value.clone();
    }
    request
}

/// Whether the grammar of the answer lets the model write this text and end.
fn admits(template: &ChatTemplate, prompt: &Prompt, text: &str) -> bool {
    let model = &template.model;
    let mut spec = serde_json::to_value(prompt).unwrap();
    spec["prefill"] = json!(true);
    let mut constraint = Constraint::new(model, &spec.to_string()).unwrap();
    let mut tokens = model.tokenize(text, false, true).unwrap();
    tokens.extend(model.end_tokens().first());
    tokens.into_iter().all(|id| {
        let mut one = sys::llama_token_data {
            id,
            logit: 1.0,
            p: 0.0,
        };
        let mut candidates = sys::llama_token_data_array {
            data: &raw mut one,
            size: 1,
            selected: -1,
            sorted: false,
        };
        constraint.apply(&mut candidates, true).unwrap();
        let fits = one.logit.is_finite();
        if fits {
            constraint.accept(id).unwrap();
        }
        fits
    })
}

fn call(name: &str, unit: &str) -> String {
    let call = format!(r#"{{"name": "{name}", "arguments": {{"unit": "{unit}"}}}}"#);
    format!("<tool_call>\n{call}\n</tool_call>")
}

#[test]
fn a_forced_answer_is_calls_that_follow_their_schemas() {
    for (name, generic, other) in [
        (Some(QWEN_3), false, "wait"),
        // llama.cpp has a rule of the same name.
        (Some(QWEN_3), false, "call"),
        (Some(QWEN_3_5), false, "wait"),
        (Some(GEMMA_4), false, "wait"),
        (None, true, "call"),
    ] {
        let template = match name {
            Some(name) => template(name),
            None => ChatTemplate::new(model(), None).unwrap(),
        };
        assert_eq!(template.calls_tools(), !generic, "{name:?}");
        let admits = |more: Value, text: &str| {
            let mut request = request(other, &more);
            request["generic_tools"] = json!(generic);
            let prompt = template.apply(&request).unwrap();
            super::tests::admits(&template, &prompt, text)
        };
        let (one, other) = (call("look", "C"), call(other, "F"));
        assert!(admits(json!({}), &one), "{name:?}");
        assert!(admits(json!({}), &format!("{one}\n{other}")), "{name:?}");
        for wrong in [
            "",
            "Sure.",
            &format!("Sure. {one}"),
            &call("look", "K"),
            &call("gone", "C"),
        ] {
            assert!(!admits(json!({}), wrong), "{name:?}: {wrong}");
        }
        let single = json!({"parallel_tool_calls": false});
        assert!(admits(single.clone(), &one), "{name:?}");
        assert!(!admits(single, &format!("{one}\n{other}")), "{name:?}");
        let (opens, closes) = match name {
            Some(GEMMA_4) => ("<|channel>thought\n", "<channel|>"),
            Some(QWEN_3) => ("<think>\n", "</think>"),
            _ => ("", "</think>"),
        };
        // Told not to think, it may not.
        let thought = format!("{opens}I should look.{closes}\n\n{one}");
        assert!(!admits(json!({}), &thought), "{name:?}");
        if !generic {
            let thinks = json!({"enable_thinking": true});
            assert!(admits(thinks.clone(), &thought), "{name:?}");
            assert!(
                !admits(thinks, &format!("{opens}I should look.{closes}Sure.")),
                "{name:?}"
            );
        }
    }
}

#[test]
fn a_call_in_the_generic_form_is_read_beside_text() {
    use crate::llama::{AnswerParser, ToolCall};
    let template = ChatTemplate::new(model(), None).unwrap();
    let read = |more: Value, text: &str| {
        let mut request = request("wait", &more);
        request["generic_tools"] = json!(true);
        let prompt = template.apply(&request).unwrap();
        AnswerParser::of(&prompt)
            .unwrap()
            .unwrap()
            .read(text, false)
            .unwrap()
    };
    let (one, other) = (call("look", "C"), call("wait", "F"));
    let named = |calls: &[ToolCall]| {
        calls
            .iter()
            .map(|call| call.name.clone())
            .collect::<Vec<_>>()
    };
    let auto = read(
        json!({"tool_choice": "auto"}),
        &format!("Let me see. {one}\n{other}"),
    );
    assert_eq!(auto.content.trim(), "Let me see.");
    assert_eq!(named(&auto.tool_calls), ["look", "wait"]);
    assert_eq!(auto.tool_calls[0].arguments, r#"{"unit": "C"}"#);
    let text = read(json!({"tool_choice": "auto"}), "It rains.");
    assert_eq!(
        (text.content.as_str(), text.tool_calls.len()),
        ("It rains.", 0)
    );
    let forced = read(json!({"parallel_tool_calls": false}), &format!("\n{one}"));
    assert_eq!(
        (forced.content.as_str(), named(&forced.tool_calls)),
        ("", vec!["look".to_owned()])
    );
}

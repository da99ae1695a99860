//! Forced calls, in the forms of real templates and in the generic one.

use super::*;
use crate::{
    llama::constraint::Constraint,
    testing::{cache_folder, model},
};

mod families;

const GEMMA_4: &str = "google-gemma-4-31B-it.jinja";
const QWEN_3: &str = "Qwen-Qwen3-0.6B.jinja";
const QWEN_3_5: &str = "Qwen3.5-4B.jinja";

fn template(name: &str) -> ChatTemplate {
    let path = cache_folder().join("templates").join(name);
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

/// A template whose forced calls are in the generic form, or in one that looks the same.
struct Form {
    template: Option<&'static str>,
    calls_tools: bool,
    /// What an answer begins with, where the prompt ends within a thought.
    opens: &'static str,
    thought: Option<&'static str>,
}

const FORMS: [Form; 8] = [
    Form {
        template: Some(QWEN_3),
        calls_tools: true,
        opens: "",
        thought: Some("<think>\nI should look.</think>\n\n"),
    },
    Form {
        template: Some(QWEN_3_5),
        calls_tools: true,
        opens: "",
        thought: Some("I should look.</think>\n\n"),
    },
    Form {
        template: Some(GEMMA_4),
        calls_tools: true,
        opens: "",
        thought: Some("<|channel>thought\nI should look.<channel|>\n\n"),
    },
    Form {
        template: Some("GLM-4.7-Flash.jinja"),
        calls_tools: true,
        opens: "",
        thought: Some("I should look.</think>\n\n"),
    },
    Form {
        template: Some("deepseek-ai-DeepSeek-V3.1.jinja"),
        calls_tools: false,
        opens: "",
        thought: Some("I should look.</think>\n\n"),
    },
    Form {
        template: Some("deepseek-ai-DeepSeek-R1-Distill-Llama-8B.jinja"),
        calls_tools: false,
        opens: "</think>\n\n",
        thought: Some("I should look.\n"),
    },
    Form {
        template: Some("ibm-granite-granite-3.3-2B-Instruct.jinja"),
        calls_tools: false,
        opens: "",
        thought: Some("<think>I should look.</think>\n"),
    },
    Form {
        template: None,
        calls_tools: false,
        opens: "",
        thought: None,
    },
];

#[test]
fn a_forced_answer_is_calls_that_follow_their_schemas() {
    for form in &FORMS {
        let name = form.template;
        let template = match name {
            Some(name) => template(name),
            None => ChatTemplate::new(model(), None).unwrap(),
        };
        assert_eq!(template.calls_tools, form.calls_tools, "{name:?}");
        // llama.cpp has rules of the other names.
        let others: &[_] = match name {
            Some(QWEN_3) => &["wait", "call", "look-schema"],
            _ => &["call"],
        };
        for &other in others {
            let prompt = |more: Value| {
                let mut request = request(other, &more);
                request["generic_tools"] = json!(!form.calls_tools);
                template.apply(&request).unwrap()
            };
            let admits = |prompt: &Prompt, text: &str| admits(&template, prompt, text);
            let several = prompt(json!({}));
            let one = format!("{}{}", form.opens, call("look", "C"));
            let both = format!("{one}\n{}", call(other, "F"));
            assert!(admits(&several, &one), "{name:?}");
            assert!(admits(&several, &both), "{name:?}: {other}");
            for wrong in [
                "",
                "Sure.",
                &format!("Sure. {one}"),
                &format!("{}{}", form.opens, call("look", "K")),
                &format!("{}{}", form.opens, call(other, "K")),
                &format!("{}{}", form.opens, call("gone", "C")),
            ] {
                assert!(!admits(&several, wrong), "{name:?}: {wrong}");
            }
            let single = prompt(json!({"parallel_tool_calls": false}));
            assert!(admits(&single, &one), "{name:?}");
            assert!(!admits(&single, &both), "{name:?}");
            let Some(thought) = form.thought else {
                continue;
            };
            // Told not to think, it may not.
            let behind = format!("{thought}{one}");
            assert!(!admits(&several, &behind), "{name:?}");
            let thinks = prompt(json!({"enable_thinking": true}));
            assert!(admits(&thinks, &behind), "{name:?}");
            assert!(!admits(&thinks, &format!("{thought}Sure.")), "{name:?}");
        }
    }
}

#[test]
fn a_call_as_text_is_held_to_its_schema() {
    for name in [None, Some(QWEN_3)] {
        let template = match name {
            Some(name) => template(name),
            None => ChatTemplate::new(model(), None).unwrap(),
        };
        let more = json!({"tool_choice": "auto", "written_calls": true, "enable_thinking": true});
        let mut request = request("wait", &more);
        request["generic_tools"] = json!(name.is_none());
        let prompt = template.apply(&request).unwrap();
        let call = |arguments: &str| format!(r#"{{"name": "look", "arguments": {arguments}}}"#);
        let (right, wrong) = (call(r#"{"unit": "C"}"#), call(r#"{"unit": "K"}"#));
        let mut cases = vec![
            (right.clone(), true),
            (wrong.clone(), false),
            (format!("```json\n{right}\n```"), true),
            (format!("```json\n{wrong}\n```"), false),
            (format!("<tools>\n[{right}]\n</tools>"), true),
            (format!("<tools>\n[{wrong}]\n</tools>"), false),
            (call(r#"{"unit": "C", "at": 1}"#), false),
            (call("7"), false),
            // An example, a call of no tool, and one that is described.
            (format!("{right}\nThat is how it is called."), true),
            (format!("It is called so: {wrong}"), true),
            (format!("```json\n{{\"calls\": [{wrong}]}}\n```"), true),
            (wrong.replace("look", "gone"), true),
            (wrong.replace("arguments", "parameters"), true),
            ("Good day.".to_owned(), true),
        ];
        if name.is_some() {
            let (start, end) = (&prompt.thinking_start, &prompt.thinking_ends[0]);
            let thought = format!("{start} I write {wrong} or not{end}");
            cases.push((format!("{thought} {right}"), true));
            cases.push((format!("{thought} {wrong}"), false));
        }
        for (text, fits) in cases {
            assert_eq!(admits(&template, &prompt, &text), fits, "{name:?}: {text}");
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
        AnswerParser::for_prompt(&prompt)
            .unwrap()
            .unwrap()
            .parse_answer(text, false)
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

#[test]
fn an_answer_beside_tools_is_a_call_or_follows_its_schema() {
    use crate::llama::AnswerParser;
    let answer =
        json!({"type": "object", "properties": {"n": {"const": "form"}}, "required": ["n"]});
    let formed = |more: Value| {
        let mut request = request("wait", &more);
        request["generic_tools"] = json!(true);
        request["json_schema"] = answer.clone();
        request["forms"] = json!({"form": "[0-9]{2}"});
        request
    };
    for name in [None, Some(QWEN_3), Some(GEMMA_4)] {
        let template = match name {
            Some(name) => template(name),
            None => ChatTemplate::new(model(), None).unwrap(),
        };
        let one = call("look", "C");
        for parallel in [false, true] {
            let more = json!({"tool_choice": "auto", "parallel_tool_calls": parallel});
            let prompt = template.apply(&formed(more)).unwrap();
            let both = format!("{one}\n{}", call("wait", "F"));
            for (text, fits) in [
                (&*one, true),
                (&*both, parallel),
                (r#"{"n": 17}"#, true),
                (r#"{"n": 7}"#, false),
                (r#"{"n": "form"}"#, false),
                (&*call("look", "K"), false),
                ("Sure.", false),
                ("", false),
            ] {
                assert_eq!(admits(&template, &prompt, text), fits, "{name:?}: {text}");
            }
            let parser = AnswerParser::for_prompt(&prompt).unwrap().unwrap();
            let read = |text: &str| parser.parse_answer(text, false).unwrap();
            let message = read(r#"{"n": 17}"#);
            assert_eq!(message.content.trim(), r#"{"n": 17}"#);
            assert!(message.tool_calls.is_empty());
            let message = read(&one);
            assert_eq!(message.content.trim(), "");
            assert_eq!(message.tool_calls.len(), 1);
        }
    }
}

#[test]
fn markers_are_words_in_angle_brackets() {
    let text = "<|im_end|>\n<|im_start|>user\n a < b > c <> <|im_end|>";
    assert_eq!(angle_bracket_words(text), ["<|im_end|>", "<|im_start|>"]);
    assert_eq!(angle_bracket_words("</s><s>[INST] "), ["</s>", "<s>"]);
    assert!(angle_bracket_words("USER: ").is_empty());
}

#[test]
fn markers_that_are_no_tokens_end_an_answer() {
    let stops = |template: &ChatTemplate| {
        let request = json!({"messages": [{"role": "user", "content": "Hi"}]});
        template.apply(&request).unwrap().stops
    };
    // The model has tokens for ChatML, which is also its own template.
    let own = ChatTemplate::new(model(), None).unwrap();
    assert!(!stops(&own).iter().any(|stop| stop.contains("<|im_")));
    let text = "{% for message in messages %}<|begin|>{{ message['role'] }}\n{{ message['content'] }}<|finish|>\n{% endfor %}";
    let foreign = ChatTemplate::new(model(), Some(text)).unwrap();
    assert_eq!(stops(&foreign), ["<|begin|>", "<|finish|>"]);
}

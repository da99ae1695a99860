//! Calls as models of each family write them, in llama.cpp's own collection of their templates: a forced answer may be such
//! a call and nothing else, and it is read as one.

use super::{admits, request, template};
use crate::llama::{AnswerParser, Message, chat::Prompt};
use serde_json::{Value, json};

/// How a template writes its calls.
struct Family {
    template: &'static str,
    /// In front of the calls.
    opens: &'static str,
    /// One, with `NAME` and `ARGUMENTS`.
    call: &'static str,
    /// Between two; without it, an answer has one call.
    between: Option<&'static str>,
    closes: &'static str,
    /// A thought in front of the calls, if the model may think.
    thought: Option<&'static str>,
    /// Whether a chosen call follows its schema, too.
    triggers: bool,
}

const FAMILIES: [Family; 11] = [
    Family {
        template: "openai-gpt-oss-120b.jinja",
        opens: "",
        call: " to=functions.NAME<|channel|>commentary json<|message|>ARGUMENTS",
        between: None,
        closes: "",
        thought: Some("<|channel|>analysis<|message|>I should look.<|end|><|start|>assistant"),
        triggers: true,
    },
    Family {
        template: "Mistral-Small-3.2-24B-Instruct-2506.jinja",
        opens: "",
        call: "[TOOL_CALLS]NAME[CALL_ID]123456789[ARGS]ARGUMENTS",
        between: Some(""),
        closes: "",
        thought: None,
        triggers: true,
    },
    Family {
        template: "unsloth-mistral-Devstral-Small-2507.jinja",
        opens: "",
        call: "[TOOL_CALLS]NAME[ARGS]ARGUMENTS",
        between: Some(""),
        closes: "",
        thought: Some("[THINK]I should look.[/THINK]"),
        triggers: true,
    },
    Family {
        template: "mistralai-Mistral-Nemo-Instruct-2407.jinja",
        opens: "[TOOL_CALLS][",
        call: r#"{"name": "NAME", "arguments": ARGUMENTS, "id": "123456789"}"#,
        between: Some(", "),
        closes: "]",
        thought: None,
        triggers: true,
    },
    Family {
        // Its prompt ends within a thought.
        template: "llama-cpp-deepseek-r1.jinja",
        opens: "</think>\n\n<｜tool▁calls▁begin｜>",
        call: "<｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME\n```json\nARGUMENTS\n```<｜tool▁call▁end｜>",
        between: Some("\n"),
        closes: "<｜tool▁calls▁end｜>",
        thought: Some("I should look.\n"),
        triggers: true,
    },
    Family {
        template: "Kimi-K2-Instruct.jinja",
        opens: "<|tool_calls_section_begin|>",
        call: "<|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>ARGUMENTS<|tool_call_end|>",
        between: Some(""),
        closes: "<|tool_calls_section_end|>",
        thought: Some("<think>I should look.</think>"),
        triggers: true,
    },
    Family {
        template: "meta-llama-Llama-3.1-8B-Instruct.jinja",
        opens: "",
        call: r#"{"name": "NAME", "parameters": ARGUMENTS}"#,
        between: Some(", "),
        closes: "",
        thought: None,
        // Nothing in front of a call tells it from text.
        triggers: false,
    },
    Family {
        template: "ibm-granite-granite-4.0.jinja",
        opens: "",
        call: "<tool_call>\n{\"name\": \"NAME\", \"arguments\": ARGUMENTS}\n</tool_call>",
        between: Some("\n"),
        closes: "",
        thought: None,
        triggers: true,
    },
    Family {
        template: "CohereForAI-c4ai-command-r7b-12-2024-tool_use.jinja",
        opens: "<|START_ACTION|>[\n    ",
        call: r#"{"tool_call_id": "0", "tool_name": "NAME", "parameters": ARGUMENTS}"#,
        between: Some(",\n    "),
        closes: "\n]<|END_ACTION|>",
        thought: Some("<|START_THINKING|>I should look.<|END_THINKING|>"),
        triggers: true,
    },
    Family {
        template: "CohereForAI-c4ai-command-r-plus-tool_use.jinja",
        opens: "Action:\n```json\n[\n    ",
        call: r#"{"tool_name": "NAME", "parameters": ARGUMENTS}"#,
        between: Some(",\n    "),
        closes: "\n]```",
        thought: None,
        triggers: true,
    },
    Family {
        template: "Qwen-Qwen3-0.6B.jinja",
        opens: "",
        call: "<tool_call>\n{\"name\": \"NAME\", \"arguments\": ARGUMENTS}\n</tool_call>",
        between: Some("\n"),
        closes: "",
        thought: Some("<think>\nI should look.\n</think>\n\n"),
        triggers: true,
    },
];

impl Family {
    fn one(&self, name: &str, unit: &str) -> String {
        let arguments = json!({"unit": unit}).to_string();
        self.call
            .replace("NAME", name)
            .replace("ARGUMENTS", &arguments)
    }

    fn answer(&self, calls: &[&str]) -> String {
        let calls = calls.join(self.between.unwrap_or_default());
        format!("{}{calls}{}", self.opens, self.closes)
    }
}

/// The called names, and whether the arguments are what was written.
fn called(message: &Message) -> Vec<&str> {
    let mut names = Vec::new();
    for call in &message.tool_calls {
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
        assert_eq!(arguments, json!({"unit": "C"}), "{call:?}");
        names.push(call.name.as_str());
    }
    names
}

#[test]
fn each_family_is_held_to_its_own_calls() {
    for family in &FAMILIES {
        let name = family.template;
        let template = template(name);
        assert!(template.calls_tools, "{name}");
        let prompt = |more: Value| template.apply(&request("lookup", &more)).unwrap();
        let single = prompt(json!({"parallel_tool_calls": false}));
        let admits = |prompt: &Prompt, text: &str| admits(&template, prompt, text);
        let (look, lookup) = (family.one("look", "C"), family.one("lookup", "C"));
        for call in [&look, &lookup] {
            assert!(admits(&single, &family.answer(&[call])), "{name}: {call}");
        }
        for wrong in [
            String::new(),
            "Sure.".to_owned(),
            family.answer(&[]),
            family.answer(&[&family.one("look", "K")]),
            family.answer(&[&family.one("gone", "C")]),
            format!("Sure. {}", family.answer(&[&look])),
            family.answer(&[&look, &lookup]),
        ] {
            assert!(!admits(&single, &wrong), "{name}: {wrong}");
        }
        let both = family.answer(&[&look, &lookup]);
        let several = admits(&prompt(json!({})), &both);
        assert_eq!(several, family.between.is_some(), "{name}: {both}");
        if let Some(thought) = family.thought {
            let thinks = prompt(json!({"enable_thinking": true, "parallel_tool_calls": false}));
            let behind = format!("{thought}{}", family.answer(&[&look]));
            assert!(!admits(&single, &behind), "{name}: {behind}");
            assert!(admits(&thinks, &behind), "{name}: {behind}");
            // Where the prompt begins the thought, two are one.
            let twice = admits(&thinks, &format!("{thought}{behind}"));
            assert_eq!(twice, family.opens.starts_with("</think>"), "{name}");
        }
        if family.triggers {
            let auto = prompt(json!({"tool_choice": "auto"}));
            assert!(admits(&auto, &family.answer(&[&look])), "{name}");
            let wrong = family.answer(&[&family.one("look", "K")]);
            assert!(!admits(&auto, &wrong), "{name}: {wrong}");
        }
    }
}

#[test]
fn each_familys_calls_are_read() {
    for family in &FAMILIES {
        let name = family.template;
        let template = template(name);
        let look = family.one("look", "C");
        let lookup = family.one("lookup", "C");
        for choice in ["auto", "required"] {
            let more = json!({"tool_choice": choice, "enable_thinking": true});
            let prompt = template.apply(&request("lookup", &more)).unwrap();
            let parser = AnswerParser::for_prompt(&prompt).unwrap().unwrap();
            let read = |text: &str| {
                let read = parser.parse_answer(text, false);
                read.unwrap_or_else(|error| panic!("{name}: {error}: {text}"))
            };
            for (call, expected) in [(&look, "look"), (&lookup, "lookup")] {
                let message = read(&family.answer(&[call]));
                assert_eq!(called(&message), [expected], "{name}: {choice}");
                assert_eq!(message.content.trim(), "", "{name}: {choice}");
            }
            if family.between.is_some() {
                let message = read(&family.answer(&[&look, &lookup]));
                assert_eq!(called(&message), ["look", "lookup"], "{name}: {choice}");
            }
            if let Some(thought) = family.thought {
                let message = read(&format!("{thought}{}", family.answer(&[&look])));
                assert_eq!(called(&message), ["look"], "{name}: {choice}");
                assert_eq!(message.reasoning_content.trim(), "I should look.", "{name}");
                // The prompt begins the thought, and the model does not end it.
                let unended = family.answer(&[&look]).replace("</think>\n\n", "");
                if choice == "auto" && family.opens.starts_with("</think>") {
                    let message = read(&format!("{thought}{unended}"));
                    assert_eq!(called(&message), ["look"], "{name}");
                    assert_eq!(message.reasoning_content.trim(), "I should look.", "{name}");
                }
            }
        }
    }
}

#[test]
fn calls_with_any_ids_are_rendered() {
    for family in &FAMILIES {
        let name = family.template;
        let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "look", "arguments": "{\"unit\": \"C\"}"}});
        for id in ["call_0123456789abcdef", "toolu_01", "123456789"] {
            let messages = json!([
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": "", "tool_calls": [call(id)]},
                {"role": "tool", "tool_call_id": id, "content": "a hat"},
            ]);
            let more = json!({"messages": messages, "tool_choice": "auto"});
            let rendered = template(name).apply(&request("lookup", &more));
            let prompt = rendered.unwrap_or_else(|error| panic!("{name}: {id}: {error}"));
            assert!(prompt.prompt.contains("a hat"), "{name}: {id}");
        }
    }
}

//! The first step that a model takes for fixed prompts, by tool calls and by text, to find the better way for it. The answers are read as
//! in a turn, and nothing is carried out.

use crate::{
    agent::{Agent, Bounds, Input, Moment, Output, Task, Way},
    calls::{Call, CallIntent, Surroundings, named_calls},
    consent::{Act, Collections, General, Grants},
    text_choice::{self, Route},
};
use serde_json::{Map, Value};
use tierbar_chats::thinking::without_thoughts;

/// What a person may ask, and the first steps that are right.
#[derive(Debug, Clone, Copy)]
pub struct Prompt {
    pub text: &'static str,
    pub right: &'static [Route],
}

/// Each step is right for three of them at most, but for a second one that some allow.
pub const PROMPTS: [Prompt; 12] = [
    prompt(
        "Has the central bank changed its interest rate this week?",
        &[Route::Search],
    ),
    prompt(
        "Which folders here take up the most space?",
        &[Route::Shell],
    ),
    prompt(
        "What does settings.json say about the language?",
        &[Route::Files],
    ),
    prompt(
        "According to my documents, when does the tenancy begin?",
        &[Route::Documents],
    ),
    prompt("Hi there, nice to meet you!", &[Route::Chat]),
    prompt(
        "Find recent news about the northern lights.",
        &[Route::Search],
    ),
    prompt("How long has this computer been running?", &[Route::Shell]),
    prompt(
        "Save the sentence \"The milk is out\" as shopping.txt.",
        &[Route::Files, Route::Shell],
    ),
    prompt(
        "Which of my saved papers deals with soil erosion?",
        &[Route::Documents],
    ),
    prompt("What is the plural of \"goose\"?", &[Route::Chat]),
    prompt(
        "Open https://example.net/soup and list the ingredients.",
        &[Route::Search],
    ),
    prompt(
        "Run make lint and tell me what it complains about.",
        &[Route::Shell],
    ),
];

const fn prompt(text: &'static str, right: &'static [Route]) -> Prompt {
    Prompt { text, right }
}

/// The longest answer, in tokens: of a call, and of one with thoughts before it.
const TOKENS: u64 = 256;
const TOKENS_WITH_THOUGHTS: u64 = 1_024;

/// Where all tools are offered.
fn surroundings() -> Surroundings {
    Surroundings {
        folder: Some("/home/user/project".into()),
        provider: Some("duckduckgo.com".to_owned()),
        pages: true,
        documents: Some(Collections::All),
        external: Vec::new(),
        programs: None,
    }
}

/// The first request of a turn with the prompt, in OpenAI's form, without a model. `thinking`: whether the model thinks before a call.
pub fn request(way: Way, prompt: &Prompt, thinking: bool) -> Map<String, Value> {
    let mut agent = Agent::new(Task {
        question: prompt.text.to_owned(),
        chat: String::new(),
        way,
        surroundings: surroundings(),
        general: General::default(),
        grants: Grants::new(Vec::new(), ""),
        bounds: Bounds::default(),
    });
    // A turn begins with a request.
    let mut fields = match agent.step(Input::Begin, Moment::default()) {
        Ok(Output::Ask(ask)) => {
            let most = if thinking {
                TOKENS_WITH_THOUGHTS
            } else {
                TOKENS
            };
            let mut fields = ask.fields(&[]);
            fields.insert("max_tokens".to_owned(), ask.max_tokens.min(most).into());
            fields
        }
        _ => Map::new(),
    };
    fields.insert("temperature".to_owned(), Value::from(0));
    fields
}

/// Reads what the answer does first. `None` if that is nothing that a turn could do. `message`: the assistant's, in OpenAI's form.
pub fn read_route(way: Way, message: &Value) -> Option<Route> {
    let surroundings = surroundings();
    let text = message["content"].as_str().unwrap_or_default();
    if let Way::Text { .. } = way {
        return text_choice::parse(text, &surroundings.routes());
    }
    let function = &message["tool_calls"][0]["function"];
    let called = function["name"].as_str().map(|name| {
        let arguments = function["arguments"].as_str().unwrap_or_default();
        (name.to_owned(), arguments.to_owned())
    });
    let written = || named_calls(text, &surroundings.tools()).into_iter().next();
    let Some((name, arguments)) = called.or_else(written) else {
        let is_answer = !without_thoughts(text).trim().is_empty();
        return is_answer.then_some(Route::Chat);
    };
    let call = Call {
        id: String::new(),
        name,
        arguments,
    };
    match surroundings.read_call(&call, &[]).ok()? {
        CallIntent::Write { .. } | CallIntent::Edit { .. } => Some(Route::Files),
        CallIntent::Act(act) => match act {
            Act::Command { .. } => Some(Route::Shell),
            Act::Read { .. } | Act::Write { .. } => Some(Route::Files),
            Act::Search { .. } | Act::Page { .. } => Some(Route::Search),
            Act::Documents { .. } => Some(Route::Documents),
            Act::Tool { .. } => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const TEXT: Way = Way::Text { grammar: true };

    fn called(name: &str, arguments: &Value) -> Option<Route> {
        let function = json!({"name": name, "arguments": arguments.to_string()});
        let message = json!({"content": null, "tool_calls": [{"id": "a", "function": function}]});
        read_route(Way::Calls, &message)
    }

    #[test]
    fn no_route_is_right_for_most_prompts() {
        for route in Route::ALL {
            let right = PROMPTS
                .iter()
                .filter(|prompt| prompt.right.contains(&route));
            let right = right.count();
            assert!((2..=4).contains(&right), "{route:?}: {right}");
        }
    }

    #[test]
    fn the_request_is_that_of_a_turn() {
        let calls = request(Way::Calls, &PROMPTS[0], false);
        assert_eq!(calls["messages"][1]["content"], PROMPTS[0].text);
        assert_eq!(calls["max_tokens"], TOKENS);
        assert_eq!(calls["temperature"], 0);
        let tools = calls["tools"].as_array().unwrap();
        assert_eq!(tools.len(), 8);
        let thinking = request(Way::Calls, &PROMPTS[0], true);
        assert_eq!(thinking["max_tokens"], TOKENS_WITH_THOUGHTS);
        let text = request(TEXT, &PROMPTS[0], true);
        assert_eq!(text["think"], false);
        assert!(text["grammar"].is_string() && !text.contains_key("tools"));
    }

    #[test]
    fn a_call_counts_as_what_it_would_do() {
        for (name, arguments, route) in [
            ("run_command", json!({"command": "uptime"}), Route::Shell),
            ("read_file", json!({"path": "settings.json"}), Route::Files),
            ("list_files", json!({"path": ""}), Route::Files),
            (
                "write_file",
                json!({"path": "a.txt", "content": "a"}),
                Route::Files,
            ),
            ("search_web", json!({"query": "news"}), Route::Search),
            (
                "read_page",
                json!({"url": "https://example.net/soup"}),
                Route::Search,
            ),
            (
                "search_documents",
                json!({"query": "tenancy"}),
                Route::Documents,
            ),
        ] {
            assert_eq!(called(name, &arguments), Some(route), "{name}");
        }
        // What a turn could not do.
        assert_eq!(called("run_command", &json!({})), None);
        assert_eq!(called("get_weather", &json!({})), None);
    }

    #[test]
    fn text_without_a_call_is_an_answer() {
        let answer = |text: &str| read_route(Way::Calls, &json!({"content": text}));
        assert_eq!(answer("Hello!"), Some(Route::Chat));
        assert_eq!(answer("<think>I should call"), None);
        let call = r#"```json
{"name": "search_web", "arguments": {"query": "news"}}
```"#;
        assert_eq!(answer(call), Some(Route::Search));
        assert_eq!(read_route(Way::Calls, &json!({"content": null})), None);
        assert_eq!(
            read_route(TEXT, &json!({"content": "shell"})),
            Some(Route::Shell)
        );
        assert_eq!(read_route(TEXT, &json!({"content": "hm"})), None);
    }
}

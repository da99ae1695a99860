//! Answers in the forms of the templates that llama.cpp comes with: whole, and cut anywhere into a stream.

use super::*;
use crate::{
    llama::ChatTemplate,
    testing::{cache_folder, model},
};
use std::fs;

const GEMMA_4: &str = "google-gemma-4-31B-it.jinja";
const QWEN_3: &str = "Qwen-Qwen3-0.6B.jinja";
const QWEN_3_5: &str = "Qwen3.5-4B.jinja";

/// The parts of an answer, with arguments parsed as JSON. As in llama-server, the line break before an end tag belongs to
/// the thinking.
#[derive(Debug, PartialEq)]
struct Received {
    reasoning: String,
    content: String,
    calls: Vec<(String, Value)>,
}

fn received(reasoning: &str, content: &str, calls: &[(&str, Value)]) -> Received {
    let calls = calls
        .iter()
        .map(|(name, arguments)| ((*name).to_owned(), arguments.clone()));
    Received {
        reasoning: reasoning.to_owned(),
        content: content.to_owned(),
        calls: calls.collect(),
    }
}

fn tools() -> Vec<Value> {
    let tool = |name: &str, properties: Value| {
        let parameters = json!({"type": "object", "properties": properties});
        json!({"type": "function", "function": {"name": name, "description": "", "parameters": parameters}})
    };
    let weather = json!({"city": {"type": "string"}, "days": {"type": "integer"}});
    vec![
        tool("get_weather", weather),
        tool("get_time", json!({"zones": {}})),
    ]
}

fn template(name: &str) -> ChatTemplate {
    let path = cache_folder().join("templates").join(name);
    let text = fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}: run `make setup`", path.display()));
    ChatTemplate::new(model(), Some(&text)).unwrap()
}

fn parser(name: &str, thinks: bool) -> Option<Arc<AnswerParser>> {
    parser_with(&template(name), &tools(), thinks)
}

fn parser_with(
    template: &ChatTemplate,
    tools: &[Value],
    thinks: bool,
) -> Option<Arc<AnswerParser>> {
    let prompt = template.apply(&json!({
        "messages": [{"role": "user", "content": "Hi"}],
        "tools": tools,
        "tool_choice": "auto",
        "parallel_tool_calls": true,
        "enable_thinking": thinks,
    }));
    AnswerParser::for_prompt(&prompt.unwrap())
        .unwrap()
        .map(Arc::new)
}

/// What a client makes of the deltas.
#[derive(Default)]
struct Client {
    reasoning: String,
    content: String,
    calls: Vec<(String, String)>,
}

impl Client {
    fn take(&mut self, deltas: &[Value]) {
        for delta in deltas {
            self.reasoning += delta["reasoning_content"].as_str().unwrap_or_default();
            self.content += delta["content"].as_str().unwrap_or_default();
            if let Some(call) = delta["tool_calls"].get(0) {
                let at = usize::try_from(call["index"].as_u64().unwrap()).unwrap();
                self.calls
                    .resize(self.calls.len().max(at + 1), Default::default());
                self.calls[at].0 += call["function"]["name"].as_str().unwrap_or_default();
                self.calls[at].1 += call["function"]["arguments"].as_str().unwrap_or_default();
            }
        }
    }

    fn received(self) -> Received {
        let read = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| json!(text));
        let calls = self
            .calls
            .into_iter()
            .map(|(name, text)| (name, read(&text)));
        Received {
            calls: calls.collect(),
            reasoning: self.reasoning,
            content: self.content,
        }
    }
}

fn check(template: &str, thinks: bool, answer: &str, expected: &Received) {
    let parser = parser(template, thinks);
    assert!(parser.is_some(), "{template}");
    let mut whole = AnswerReader::new(parser.clone(), false, None);
    let mut client = Client::default();
    answer.clone_into(&mut whole.text);
    client.take(&whole.finish(false));
    assert_eq!(&client.received(), expected, "{template}, whole: {answer}");
    // Cut at each place once, and at every place at once.
    let cuts: Vec<usize> = answer.char_indices().map(|(at, _)| at).collect();
    let pieces = |cuts: &[usize]| {
        let mut reader = AnswerReader::new(parser.clone(), false, None);
        let mut client = Client::default();
        let mut from = 0;
        for &cut in cuts.iter().chain([&answer.len()]) {
            client.take(&reader.push(&answer[from..cut]));
            from = cut;
        }
        client.take(&reader.finish(false));
        client.received()
    };
    for cut in &cuts {
        assert_eq!(
            &pieces(&[*cut]),
            expected,
            "{template}, cut at {cut}: {answer}"
        );
    }
    assert_eq!(
        &pieces(&cuts),
        expected,
        "{template}, by characters: {answer}"
    );
}

#[test]
fn gemma_4_answers_are_read_whole_and_cut_anywhere() {
    let paris = || json!({"city": "Paris"});
    check(
        GEMMA_4,
        false,
        "Hello, wörld! 🦙",
        &received("", "Hello, wörld! 🦙", &[]),
    );
    check(
        GEMMA_4,
        true,
        "<|channel>thought\nI have\nto look.<channel|>Good day.",
        &received("I have\nto look.", "Good day.", &[]),
    );
    check(
        GEMMA_4,
        true,
        "<|channel>thought\nI look.<channel|><|tool_call>call:get_weather{city:<|\"|>Paris<|\"|>}<tool_call|>",
        &received("I look.", "", &[("get_weather", paris())]),
    );
    check(
        GEMMA_4,
        false,
        "<|tool_call>call:get_weather{city:<|\"|>a \"b\" {c}<|\"|>,days:3}<tool_call|><|tool_call>call:get_time{}<tool_call|>",
        &received(
            "",
            "",
            &[
                ("get_weather", json!({"city": "a \"b\" {c}", "days": 3})),
                ("get_time", json!({})),
            ],
        ),
    );
}

#[test]
fn qwen3_answers_are_read_whole_and_cut_anywhere() {
    check(
        QWEN_3,
        false,
        "Hello, wörld! 🦙",
        &received("", "Hello, wörld! 🦙", &[]),
    );
    check(
        QWEN_3,
        true,
        "<think>\nI have\nto look.\n</think>\n\nGood day.",
        &received("I have\nto look.\n", "Good day.", &[]),
    );
    check(
        QWEN_3,
        true,
        "<think>\nI look.\n</think>\n\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Köln \\\"x\\\"\", \"days\": 3}}\n</tool_call>",
        &received(
            "I look.\n",
            "",
            &[("get_weather", json!({"city": "Köln \"x\"", "days": 3}))],
        ),
    );
    // The thoughts do not end, and name a call before it.
    check(
        QWEN_3,
        true,
        "<think>\nI write <tool_call>.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>",
        &received(
            "I write <tool_call>.\n",
            "",
            &[("get_weather", json!({"city": "Oslo"}))],
        ),
    );
    check(
        QWEN_3,
        true,
        "<think>\nI write <tool_call> or not.\n</think>\n\nNo.",
        &received("I write <tool_call> or not.\n", "No.", &[]),
    );
    check(
        QWEN_3,
        false,
        "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"get_time\", \"arguments\": {}}\n</tool_call>",
        &received(
            "",
            "",
            &[
                ("get_weather", json!({"city": "Oslo"})),
                ("get_time", json!({})),
            ],
        ),
    );
}

#[test]
fn qwen3_5_answers_are_read_whole_and_cut_anywhere() {
    check(
        QWEN_3_5,
        false,
        "Hello, wörld! 🦙",
        &received("", "Hello, wörld! 🦙", &[]),
    );
    // Its prompt ends within the thinking.
    check(
        QWEN_3_5,
        true,
        "I have\nto look.\n</think>\n\nGood day.",
        &received("I have\nto look.\n", "Good day.", &[]),
    );
    let weather = "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis <b>\n</parameter>\n<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>";
    check(
        QWEN_3_5,
        true,
        &format!("I look.\n</think>\n\n{weather}"),
        &received(
            "I look.\n",
            "",
            &[("get_weather", json!({"city": "Paris <b>", "days": 3}))],
        ),
    );
    check(
        QWEN_3_5,
        false,
        &format!("{weather}\n<tool_call>\n<function=get_time>\n</function>\n</tool_call>"),
        &received(
            "",
            "",
            &[
                ("get_weather", json!({"city": "Paris <b>", "days": 3})),
                ("get_time", json!({})),
            ],
        ),
    );
}

#[test]
fn an_answer_that_is_only_calls_as_text_is_calls() {
    let call = r#"{"name": "get_weather", "arguments": {"city": "Oslo"}}"#;
    let fenced = format!("```json\n{call}\n```");
    let both = format!("[{call}, {call}]");
    let oslo = || ("get_weather", json!({"city": "Oslo"}));
    let shown = |text: &str| (text.to_owned(), received("", text, &[]));
    let parser = parser(QWEN_3, false);
    for parallel in [false, true] {
        let calls = if parallel { 2 } else { 1 };
        let offered = OfferedTools::read(&tools(), None, Some(parallel)).unwrap();
        let offered = Arc::new(offered);
        for (answer, expected) in [
            (call.to_owned(), received("", "", &[oslo()])),
            (fenced.clone(), received("", "", &[oslo()])),
            (both.clone(), received("", "", &[oslo(), oslo()][..calls])),
            shown(&format!("I write {call}")),
            shown(&format!("I should look.</think>\n{call}")),
            shown(&call.replace("get_weather", "gone")),
            shown(&call.replace("city", "town")),
            shown(r#"{"name": "Ada"}"#),
        ] {
            for length in [1, answer.len()] {
                let writable = Some(Arc::clone(&offered));
                let mut reader = AnswerReader::new(parser.clone(), false, writable);
                let mut client = Client::default();
                for piece in answer.as_bytes().chunks(length) {
                    client.take(&reader.push(str::from_utf8(piece).unwrap()));
                }
                client.take(&reader.finish(false));
                assert_eq!(client.received(), expected, "{answer}");
            }
            let writable = Some(Arc::clone(&offered));
            let mut whole = AnswerReader::new(parser.clone(), false, writable);
            answer.clone_into(&mut whole.text);
            let mut client = Client::default();
            client.take(&whole.finish(false));
            assert_eq!(client.received(), expected, "{answer}");
        }
    }
}

/// llama-server reads answers with llama.cpp's parser alone. It finds calls where the model writes its template's tags.
#[test]
fn recorded_calls_are_read_that_upstream_leaves_as_text() {
    const RECORDED: &str = include_str!("../../../../../../tests/fixtures/written-calls.jsonl");
    const TOOLS: &str = include_str!("../../../../../../tests/eval/call_tools.json");
    let tools: Vec<Value> = serde_json::from_str(TOOLS).unwrap();
    let template = template(QWEN_3);
    for line in RECORDED.lines() {
        let recorded: Value = serde_json::from_str(line).unwrap();
        let (answer, about) = (recorded["raw"].as_str().unwrap(), &recorded["id"]);
        let names = recorded["tools"].as_array().unwrap();
        let mut offered = tools.clone();
        offered.retain(|tool| names.contains(&tool["function"]["name"]));
        let parser = parser_with(&template, &offered, false).unwrap();
        let upstreams = parser.parse_answer(answer, false).unwrap().tool_calls;
        let is_tagged = answer.contains("<tool_call>");
        assert!(upstreams.is_empty() || is_tagged, "{about}: {upstreams:?}");
        let writable = OfferedTools::read(&offered, None, None).unwrap();
        let mut reader = AnswerReader::new(Some(parser), false, Some(Arc::new(writable)));
        reader.take(answer, false);
        let calls = reader.message.tool_calls.iter().map(|call| {
            let arguments: Value = call.arguments.parse().unwrap();
            json!([call.name, arguments])
        });
        let calls = json!(calls.collect::<Vec<_>>());
        // A client's function may not look for what is missing.
        let has_required = |call: &Value| {
            let tool = offered
                .iter()
                .find(|tool| tool["function"]["name"] == call[0]);
            let required = &tool.unwrap()["function"]["parameters"]["required"];
            let mut names = required.as_array().unwrap().iter();
            names.all(|name| call[1].get(name.as_str().unwrap()).is_some())
        };
        let mut written = recorded["calls"].as_array().unwrap().iter();
        let expected = match written.all(has_required) {
            true => recorded["calls"].clone(),
            false => json!([]),
        };
        assert_eq!(calls, expected, "{about}: {answer}");
        let is_shown = !reader.message.content.is_empty();
        assert_eq!(
            is_shown,
            reader.message.tool_calls.is_empty(),
            "{about}: {answer}"
        );
    }
}

#[test]
fn what_is_held_back_is_little_and_never_lost() {
    let offered = Arc::new(OfferedTools::read(&tools(), None, Some(true)).unwrap());
    let reader = |thinks| {
        let writable = Some(Arc::clone(&offered));
        AnswerReader::new(parser(QWEN_3, thinks), false, writable)
    };
    // JSON that is no call is shown as it comes.
    let mut list = reader(false);
    let deltas = list.push("[{\"city\": \"Oslo\"");
    assert_eq!(deltas, [json!({"content": "[{\"city\": \"Oslo\""})]);
    // So are thoughts about calls, soon.
    let mut talk = reader(true);
    let mut client = Client::default();
    client.take(&talk.push("<think>\nI write <tool_call>"));
    assert_eq!(client.reasoning, "I write ");
    let words = " or not, as the question is about the weather. ".repeat(3);
    client.take(&talk.push(&words));
    let thoughts = format!("I write <tool_call>{words}");
    assert_eq!(client.reasoning.trim_end(), thoughts.trim_end());
    // A call that breaks off is text.
    let begun = "{\"name\": \"get_weather\", \"arguments\": {\"city\": ";
    let mut cut = reader(false);
    let mut client = Client::default();
    client.take(&cut.push(begun));
    assert_eq!(client.content, "");
    client.take(&cut.finish(true));
    assert_eq!(client.received(), received("", begun, &[]));
}

/// On a thread of the usual size, where answers are read.
#[test]
fn endless_nesting_is_shown_as_text() {
    for (template, open, close) in [
        (GEMMA_4, "<|tool_call>call:get_time{zones:", "}<tool_call|>"),
        (
            QWEN_3,
            "<tool_call>\n{\"name\": \"get_time\", \"arguments\": {\"zones\": ",
            "}}\n</tool_call>",
        ),
        (
            QWEN_3_5,
            "<tool_call>\n<function=get_time>\n<parameter=zones>\n",
            "\n</parameter>\n</function>\n</tool_call>",
        ),
    ] {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        let received_of = |answer: &str| {
            let mut reader = AnswerReader::new(parser(template, false), false, None);
            let mut client = Client::default();
            client.take(&reader.push(answer));
            client.take(&reader.finish(false));
            client.received()
        };
        let deep = received_of(&format!("{open}{}{close}", nested(1000)));
        assert_eq!(
            (deep.content.as_str(), deep.calls.len()),
            ("", 1),
            "{template}"
        );
        assert!(
            deep.calls[0].1.to_string().contains(&nested(1000)),
            "{template}"
        );
        for endless in [
            format!("{open}{}", "[".repeat(200_000)),
            format!("{open}{}{close}", nested(200_000)),
        ] {
            assert_eq!(
                received_of(&endless),
                received("", &endless, &[]),
                "{template}"
            );
        }
    }
}

//! Answers that small models gave to questions with functions, and what each of them calls by its text alone.

use super::*;
use serde::Deserialize;

/// What `tests/eval/run --only calls` recorded, with its labels.
const RECORDED: &str = include_str!("../../../../../tests/fixtures/written-calls.jsonl");
const TOOLS: &str = include_str!("../../../../../tests/eval/call_tools.json");

#[derive(Debug, Deserialize)]
struct Recorded {
    model: String,
    id: u32,
    /// The names of those offered.
    tools: Vec<String>,
    /// The answer's text.
    raw: String,
    calls: Vec<(String, Value)>,
}

#[test]
fn recorded_answers_are_read() {
    let tools: Vec<Value> = serde_json::from_str(TOOLS).unwrap();
    for line in RECORDED.lines() {
        let recorded: Recorded = serde_json::from_str(line).unwrap();
        let about = format!("{} {}: {}", recorded.model, recorded.id, recorded.raw);
        let mut offered = tools.clone();
        offered.retain(|tool| {
            let mut names = recorded.tools.iter();
            names.any(|name| tool["function"]["name"] == name.as_str())
        });
        let calls = written_calls(&recorded.raw, &offered).into_iter();
        let calls: Vec<(String, Value)> = calls
            .map(|(name, arguments)| (name, arguments.parse().unwrap()))
            .collect();
        assert_eq!(calls, recorded.calls, "{about}");
        if calls.is_empty() {
            continue;
        }
        // Nothing of it is shown before.
        for (end, _) in recorded.raw.char_indices() {
            let begun = &recorded.raw[..end];
            assert!(may_begin_call(begun, &offered), "{about}: {begun}");
        }
    }
}

#[test]
fn a_complete_call_has_what_its_tool_requires() {
    let tools: Vec<Value> = serde_json::from_str(TOOLS).unwrap();
    let mail =
        |arguments: &str| format!("{{\"name\": \"send_mail\", \"arguments\": {{{arguments}}}}}");
    let (whole, half) = (
        mail("\"to\": \"Ada\", \"text\": null"),
        mail("\"to\": \"Ada\""),
    );
    for (answer, complete) in [
        (whole.clone(), 1),
        (half.clone(), 0),
        (format!("[{whole}, {whole}]"), 2),
        (format!("[{whole}, {half}]"), 0),
    ] {
        assert_eq!(complete_calls(&answer, &tools).len(), complete, "{answer}");
        assert!(!written_calls(&answer, &tools).is_empty(), "{answer}");
    }
}

#[test]
fn arguments_get_the_types_that_the_tool_takes() {
    let tools: Vec<Value> = serde_json::from_str(TOOLS).unwrap();
    let elements = |name: &str, arguments: [(&str, &str); 2]| {
        let arguments = arguments
            .map(|(name, value)| format!("<parameter={name}>\n{value}\n</parameter>\n"))
            .concat();
        format!("<function={name}>\n{arguments}</function>")
    };
    for (answer, arguments) in [
        (
            r#"{"name": "get_weather", "arguments": {"city": "7", "days": "3"}}"#.to_owned(),
            r#"{"city":"7","days":3}"#,
        ),
        (
            r#"{"name": "get_weather", "arguments": {"city": "Oslo", "days": "some"}}"#.to_owned(),
            r#"{"city":"Oslo","days":"some"}"#,
        ),
        (
            elements("switch_light", [("room", "Küche"), ("on", "True")]),
            r#"{"room":"Küche","on":true}"#,
        ),
        (
            elements("set_timer", [("minutes", "2.5"), ("label", "1")]),
            r#"{"minutes":2.5,"label":"1"}"#,
        ),
    ] {
        let calls = complete_calls(&answer, &tools);
        assert_eq!(calls.len(), 1, "{answer}");
        assert_eq!(calls[0].1, arguments, "{answer}");
    }
}

#[test]
fn a_long_call_is_held_and_read() {
    let tools: Vec<Value> = serde_json::from_str(TOOLS).unwrap();
    let text = "天气".repeat(35_000);
    let arguments = format!(r#"{{"to": "李明", "text": "{text}"}}"#);
    let call = format!(r#"{{"name": "send_mail", "arguments": {arguments}}}"#);
    let head = |answer: &str| answer.chars().take(40).collect::<String>();
    for answer in [
        call.clone(),
        format!("```json\n{call}\n```"),
        format!("<tools>[{call}]</tools>"),
        call.replacen("\"name\": \"send_mail\"", "“name”：“send_mail”", 1),
        format!("<function=send_mail>{arguments}</function>"),
        format!(r#"{{"type": "function", "function": {call}}}"#),
        format!(r#"{{"tool_calls": [{call}]}}"#),
        format!(r#"{{"tool_calls": [{{"id": "1", "function": {call}}}]}}"#),
    ] {
        let begun = &answer[..answer.floor_char_boundary(answer.len() - 20)];
        assert!(may_begin_call(begun, &tools), "{}", head(&answer));
        let calls = complete_calls(&answer, &tools);
        assert_eq!(calls.len(), 1, "{}", head(&answer));
        assert!(calls[0].1.contains(&text), "{}", head(&answer));
    }
    // What names no tool is not held for as long, and nothing is held without an end.
    for answer in [
        format!("{}{}", &call[..call.len() - 3], "a".repeat(LONGEST)),
        format!("{{\"input\": \"{text}"),
        format!("{{\"arguments\": {arguments}, \"name\": \"send_mail\"}}"),
        format!("<function={text}"),
        format!("<function=sell>{arguments}"),
    ] {
        assert!(!may_begin_call(&answer, &tools), "{}", head(&answer));
    }
}

#[test]
fn a_call_is_held_wherever_its_numbers_are_cut() {
    let tools: Vec<Value> = serde_json::from_str(TOOLS).unwrap();
    for number in ["-3", "2.5", "1e-3", "-1.5E+2", "true", "\"-e.\""] {
        let call = format!(r#"{{"name": "set_timer", "arguments": {{"minutes": {number}}}}}"#);
        assert_eq!(named_calls(&call, &tools).len(), 1, "{call}");
        for end in 0..=call.len() {
            assert!(may_begin_call(&call[..end], &tools), "{}", &call[..end]);
        }
    }
}

#[test]
fn an_example_is_shown_once_words_follow() {
    let tools: Vec<Value> = serde_json::from_str(TOOLS).unwrap();
    let call = r#"{"name": "set_timer", "arguments": {"minutes": 3}}"#;
    for (example, is_held) in [
        (format!("{call}\nThat"), false),
        (format!("{call}. "), false),
        (format!("```json\n{call}\n```\nThat"), false),
        (format!("<tools>[{call}]</tools> is"), false),
        (format!("{call}, {call}\nThat"), false),
        (r#"{"type": "object"} is"#.to_owned(), false),
        (call.replacen("\"name\"", "“name”", 1) + " is", false),
        (format!("{call}}}\n"), true),
        (format!("{call}, {{"), true),
        (format!("[{call}];\n["), true),
        (format!("```json\n{call}\n``"), true),
        (format!("<tools>[{call}]</to"), true),
    ] {
        assert_eq!(may_begin_call(&example, &tools), is_held, "{example}");
    }
    // Also a long one.
    let long = call.replace(
        "minutes\": 3",
        &format!("label\": \"{}\"", "a".repeat(70_000)),
    );
    assert!(may_begin_call(&long, &tools));
    assert!(!may_begin_call(&format!("{long} is"), &tools));
}

#[test]
fn a_long_text_is_seldom_read_anew() {
    let mut text = GrowingText::default();
    let lengths = (4..=LONGEST).step_by(4);
    let read: usize = lengths.filter(|length| text.is_due(*length)).sum();
    assert!(read < 16 * LONGEST, "{read}");
    // Another text begins.
    assert!(text.is_due(4));
}

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

//! The rules over the evaluation set of `tests/eval`, without a model.

use crate::routing::{Level, Traits, judge};
use serde_json::{Value, json};

const PROMPTS: &str = include_str!("../../../../../../tests/eval/prompts.jsonl");
const LICENSE: &str = include_str!("../../../../../../LICENSE");

fn traits(line: &Value) -> Traits {
    let mut request = json!({"messages": line["messages"]});
    if let Some(prompt) = line["prompt"].as_str() {
        let file = match line["file"].as_str() {
            Some("LICENSE") => format!("\n\n{LICENSE}"),
            Some(other) => panic!("no text of {other}"),
            None => String::new(),
        };
        let mut content = vec![json!({"type": "text", "text": format!("{prompt}{file}")})];
        if line["image"] == true {
            content.push(json!({"type": "image_url"}));
        }
        request["messages"] = json!([{"role": "user", "content": content}]);
    }
    if line["tools"] == true {
        request["tools"] = json!([{}]);
    }
    Traits::of(&request)
}

/// Prompts of a set, those that the rules get right, and those of `heavy` that they give to `fast`.
fn sorted(set: &str) -> (usize, usize, Vec<String>) {
    let (mut all, mut right, mut spoilt) = (0, 0, Vec::new());
    for line in PROMPTS.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        if line["set"] != set {
            continue;
        }
        all += 1;
        let level = judge(&traits(&line)).level;
        let label = line["label"].as_str().unwrap();
        assert!(
            Level::ALL.iter().any(|level| level.tier() == label),
            "{line}"
        );
        right += usize::from(level.tier() == label);
        if level == Level::Simple && label == "heavy" {
            spoilt.push(line["id"].to_string());
        }
    }
    (all, right, spoilt)
}

/// Floors, below what was measured when they were set: a change of the rules that sorts worse is seen.
#[test]
fn the_rules_sort_most_of_the_evaluation_set() {
    for (set, size, floor) in [("a", 70, 65), ("b", 33, 29), ("c", 30, 13), ("d", 12, 7)] {
        let (all, right, spoilt) = sorted(set);
        assert!(all >= size, "{all} in set {set}");
        assert!(right >= floor, "{right} of {all} in set {set}");
        assert!(spoilt.len() <= 1, "too small by two: {spoilt:?}");
    }
}

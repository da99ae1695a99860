//! The greetings of the labeled messages, without a model.

use crate::is_greeting;
use serde_json::Value;

const MESSAGES: &str = include_str!("../../../../../tests/eval/messages.jsonl");

/// Messages of a set that are taken for greetings: labeled so, and others.
fn taken(set: &str) -> (usize, Vec<String>) {
    let lines = MESSAGES
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let of_set = lines.filter(|line: &Value| line["set"] == set);
    let taken = of_set.filter(|line| is_greeting(line["text"].as_str().unwrap()));
    let (right, wrong): (Vec<Value>, Vec<Value>) =
        taken.partition(|line| line["type"] == "greeting");
    (right.len(), wrong.iter().map(ToString::to_string).collect())
}

#[test]
fn nothing_but_greetings_is_taken_for_one() {
    for (set, least) in [("dev", 4), ("test", 1)] {
        let (right, wrong) = taken(set);
        assert!(wrong.is_empty(), "{wrong:#?}");
        assert!(right >= least, "{right} greetings of {set}");
    }
}

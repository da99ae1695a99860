//! Each field that the tables call honored changes the answer of a real model. That it is read says little of that.

use crate::support::Worker;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};
use tierbar_request_fields::{
    COMPLETION_ADDITIONS, COMPLETIONS, Effect, GENERATION_ADDITIONS, Table,
};

const TABLES: [&Table; 3] = [&COMPLETIONS, &GENERATION_ADDITIONS, &COMPLETION_ADDITIONS];
/// The gateway reads the first two; `answers.rs` reads the streams.
const ELSEWHERE: [&str; 4] = ["model", "keep_alive", "stream", "stream_options"];
/// It takes no more answers than `n`, so that it changes nothing beside one.
const ONLY_CHECKED: [&str; 1] = ["best_of"];

/// A request, a field, and a value of it that must change the answer.
type Probe = (Value, &'static str, Value);

/// Where a text is drawn, so that what the sampler may choose shows.
fn sampling() -> Vec<Probe> {
    let drawn = || json!({"temperature": 1.5, "top_k": 0, "top_p": 1, "min_p": 0});
    let with = |fields: Value| merged(drawn(), &fields);
    vec![
        (drawn(), "seed", json!(8)),
        (drawn(), "temperature", json!(0)),
        (drawn(), "top_p", json!(0.05)),
        (drawn(), "top_k", json!(1)),
        (drawn(), "min_p", json!(1)),
        (drawn(), "typical_p", json!(0.01)),
        (drawn(), "top_n_sigma", json!(0.01)),
        (
            with(json!({"xtc_threshold": 0.01})),
            "xtc_probability",
            json!(1),
        ),
        (
            with(json!({"xtc_probability": 1, "xtc_threshold": 0.5})),
            "xtc_threshold",
            json!(0.001),
        ),
        (drawn(), "dynatemp_range", json!(1.4)),
        (
            with(json!({"dynatemp_range": 1.4})),
            "dynatemp_exponent",
            json!(8),
        ),
        (drawn(), "mirostat", json!(1)),
        (with(json!({"mirostat": 2})), "mirostat_tau", json!(0.1)),
        (with(json!({"mirostat": 2})), "mirostat_eta", json!(1)),
        (drawn(), "logit_bias", json!({"28": 100})),
        (drawn(), "n", json!(2)),
    ]
}

/// Where the likeliest text repeats itself, so that what keeps it from that shows.
fn repetition() -> Vec<Probe> {
    let repeats =
        || json!({"temperature": 0, "prompt": "one two three one two three one two three one two"});
    let with = |fields: Value| merged(repeats(), &fields);
    let dry = || with(json!({"dry_multiplier": 20}));
    vec![
        (repeats(), "frequency_penalty", json!(2)),
        (repeats(), "presence_penalty", json!(2)),
        (repeats(), "repeat_penalty", json!(3)),
        (repeats(), "repetition_penalty", json!(3)),
        (
            with(json!({"repeat_penalty": 3})),
            "repeat_last_n",
            json!(0),
        ),
        (repeats(), "dry_multiplier", json!(20)),
        (
            with(json!({"dry_multiplier": 0.001, "dry_base": 1})),
            "dry_base",
            json!(50),
        ),
        (dry(), "dry_allowed_length", json!(100)),
        (dry(), "dry_penalty_last_n", json!(0)),
        (
            dry(),
            "dry_sequence_breakers",
            json!([" one", " two", " three"]),
        ),
    ]
}

/// What the answer is made of, where it ends, and what is shown of it.
fn form() -> Vec<Probe> {
    let greedy = || json!({"temperature": 0});
    let with = |fields: Value| merged(greedy(), &fields);
    let schema = json!({"type": "object", "properties": {"n": {"enum": [7]}}, "required": ["n"]});
    let grammar = json!("root ::= \"a\"");
    vec![
        (greedy(), "prompt", json!("The mountain is")),
        (greedy(), "max_tokens", json!(2)),
        (
            with(json!({"max_tokens": null, "stop": ["."]})),
            "n_predict",
            json!(2),
        ),
        (greedy(), "stop", json!([" "])),
        (with(json!({"stop": [" "]})), "min_tokens", json!(6)),
        (
            with(json!({"logit_bias": {"28": 100}})),
            "stop_token_ids",
            json!([28]),
        ),
        (
            with(json!({"logit_bias": {"0": 100, "2": 100}})),
            "ignore_eos",
            json!(true),
        ),
        (greedy(), "echo", json!(true)),
        (greedy(), "logprobs", json!(1)),
        (greedy(), "n_probs", json!(1)),
        (greedy(), "prompt_logprobs", json!(1)),
        (greedy(), "grammar", grammar.clone()),
        (greedy(), "guided_grammar", grammar),
        (greedy(), "json_schema", schema.clone()),
        (greedy(), "guided_json", schema.clone()),
        (greedy(), "guided_regex", json!("[0-9]{3}")),
        (greedy(), "guided_choice", json!(["whale", "crab"])),
        (
            greedy(),
            "structured_outputs",
            json!({"choice": ["whale", "crab"]}),
        ),
        (
            greedy(),
            "response_format",
            json!({"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}),
        ),
        // The same prompt once more, which the worker has in its cache.
        (greedy(), "cache_prompt", json!(false)),
    ]
}

fn merged(mut base: Value, fields: &Value) -> Value {
    for (name, value) in fields.as_object().unwrap() {
        base[name] = value.clone();
    }
    base
}

async fn ask(worker: &Worker, fields: &Value) -> Value {
    let base = json!({"prompt": "The sea is", "max_tokens": 24, "seed": 7});
    let request = merged(base, fields);
    let (status, answer) = worker.post("/v1/completions", &request).await;
    assert_eq!(status, 200, "{request}: {answer}");
    answer
}

/// What a field changes: the text and what is shown of it, or how much of the prompt was computed.
fn part(answer: &Value, field: &str) -> Value {
    match field {
        "cache_prompt" => answer["usage"]["prompt_tokens_details"].clone(),
        _ => json!([answer["choices"], answer["prompt_logprobs"]]),
    }
}

#[tokio::test]
async fn each_honored_field_changes_the_answer() {
    let worker = Worker::smollm().await;
    let probes = [sampling(), repetition(), form()].concat();
    let mut without = BTreeMap::new();
    let mut without_effect = Vec::new();
    for (base, name, value) in &probes {
        let key = base.to_string();
        if let Entry::Vacant(entry) = without.entry(key.clone()) {
            // The first fills the cache.
            ask(&worker, base).await;
            let [once, twice] = [ask(&worker, base).await, ask(&worker, base).await];
            assert_eq!(part(&once, name), part(&twice, name), "{base}");
            entry.insert(once);
        }
        let changed = ask(&worker, &merged(base.clone(), &json!({*name: value}))).await;
        if part(&changed, name) == part(&without[&key], name) {
            without_effect.push(name);
        }
    }
    assert!(without_effect.is_empty(), "{without_effect:?}");

    let probed: BTreeSet<_> = probes.iter().map(|(_, name, _)| *name).collect();
    let honored = TABLES.iter().flat_map(|table| table.fields);
    let honored = honored.filter(|field| matches!(field.effect, Effect::Honored(_)));
    let missing: Vec<_> = honored
        .map(|field| field.name)
        .filter(|name| {
            let mut others = ELSEWHERE.iter().chain(&ONLY_CHECKED);
            !probed.contains(name) && !others.any(|other| other == name)
        })
        .collect();
    assert!(missing.is_empty(), "no probe has {missing:?}");
}

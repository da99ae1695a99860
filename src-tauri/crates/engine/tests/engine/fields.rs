//! Each field that the tables call honored changes the answer of a real model. That it is read says little of that.

use crate::support::{SMOLLM, Worker, model};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};
use tierbar_request_fields::{
    CHAT, CHAT_ADDITIONS, COMPLETION_ADDITIONS, COMPLETIONS, GENERATION_ADDITIONS, REASONING, Table,
};

/// The gateway reads the first two; `answers.rs` reads the streams.
const ELSEWHERE: [&str; 4] = ["model", "keep_alive", "stream", "stream_options"];
/// The first takes no more answers than `n`, and the second goes with `continue_final_message`: neither changes anything beside it.
const ONLY_CHECKED: [&str; 2] = ["best_of", "add_generation_prompt"];

/// With tools and thinking, which the test model's own template lacks.
const TEMPLATE: &str = include_str!("../../../../../tests/fixtures/tools.jinja");
/// Comes before it: a system message for `verbosity`.
const VERBOSITY: &str =
    "{%- if verbosity %}{{- '<|im_start|>system\\nBe brief.<|im_end|>\\n' }}{%- endif %}\n";

/// A request, a field, and a value of it that must change the answer. A field within another has both names: `reasoning.effort`.
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

/// The most likely continuation repeats it further.
const REPETITIVE: &str = "one two three one two three one two three one two";

/// Of a request that continues [`REPETITIVE`], so that what prevents repetition shows.
fn repetition(request: &Value) -> Vec<Probe> {
    let repeats = || merged(json!({"temperature": 0}), request);
    let with = |fields: Value| merged(repeats(), &fields);
    let dry = || with(json!({"dry_multiplier": 20}));
    vec![
        (repeats(), "frequency_penalty", json!(2)),
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
        (greedy(), "n_probs", json!(1)),
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

/// What only completions have.
fn completions() -> Vec<Probe> {
    let greedy = || json!({"temperature": 0});
    vec![
        (
            merged(greedy(), &json!({"prompt": REPETITIVE})),
            "presence_penalty",
            json!(2),
        ),
        (greedy(), "prompt", json!("The mountain is")),
        (greedy(), "echo", json!(true)),
        (greedy(), "logprobs", json!(1)),
        (greedy(), "prompt_logprobs", json!(1)),
    ]
}

/// What only chats have: messages, tools and thoughts.
fn chats() -> Vec<Probe> {
    let greedy = || json!({"temperature": 0});
    let with = |fields: Value| merged(greedy(), &fields);
    let thinks = || with(json!({"think": true}));
    let mountains = "Name ten mountains, from the highest down to the lowest.";
    let begun = json!([
        {"role": "user", "content": "Tell me about the sea."},
        {"role": "assistant", "content": "The sea is"},
    ]);
    let functions = json!([
        {"name": "look", "parameters": {"type": "object", "properties": {}}},
        {"name": "wait", "parameters": {"type": "object", "properties": {}}},
    ]);
    let tools = json!([
        {"type": "function", "function": functions[0]},
        {"type": "function", "function": functions[1]},
    ]);
    // Too few tokens for a call, whose id would differ each time.
    let offers = |fields: Value| merged(with(json!({"max_tokens": 4})), &fields);
    // If other answers follow a schema, the functions are described in the prompt, which says how many calls the model may make.
    let schema = json!({"type": "object", "properties": {"n": {"enum": [7]}}, "required": ["n"]});
    let form = json!({"type": "json_schema", "json_schema": {"name": "a", "schema": schema}});
    vec![
        (
            greedy(),
            "messages",
            json!([{"role": "user", "content": mountains}]),
        ),
        (
            with(json!({"messages": begun})),
            "continue_final_message",
            json!(true),
        ),
        // In a chat, the repetitive text leads by more than that.
        (greedy(), "presence_penalty", json!(2)),
        (greedy(), "max_completion_tokens", json!(2)),
        (greedy(), "logprobs", json!(true)),
        (with(json!({"logprobs": true})), "top_logprobs", json!(2)),
        (greedy(), "tools", tools.clone()),
        (
            offers(json!({"tools": tools})),
            "tool_choice",
            json!({"type": "function", "function": {"name": "look"}}),
        ),
        (
            offers(json!({"tools": tools, "response_format": form})),
            "parallel_tool_calls",
            json!(false),
        ),
        (greedy(), "functions", functions.clone()),
        (
            offers(json!({"functions": functions})),
            "function_call",
            json!({"name": "look"}),
        ),
        (greedy(), "think", json!(true)),
        (greedy(), "reasoning_effort", json!("low")),
        (greedy(), "reasoning.effort", json!("low")),
        (greedy(), "reasoning.enabled", json!(true)),
        (thinks(), "reasoning.max_tokens", json!(4)),
        (thinks(), "thinking_budget_tokens", json!(4)),
        (
            greedy(),
            "chat_template_kwargs",
            json!({"enable_thinking": true}),
        ),
        (greedy(), "verbosity", json!("low")),
    ]
}

fn merged(mut base: Value, fields: &Value) -> Value {
    for (name, value) in fields.as_object().unwrap() {
        base[name] = value.clone();
    }
    base
}

fn field(name: &str, value: &Value) -> Value {
    match name.split_once('.') {
        Some((outer, inner)) => json!({outer: {inner: value}}),
        None => json!({name: value}),
    }
}

/// What a field changes: the text and what is shown of it, the prompt, or how much of the prompt was computed.
fn part(answer: &Value, field: &str) -> Value {
    let usage = &answer["usage"];
    match field {
        // How many calls an answer may have changes the prompt's words and not their number.
        "cache_prompt" | "parallel_tool_calls" => usage["prompt_tokens_details"].clone(),
        _ => json!([
            answer["choices"],
            answer["prompt_logprobs"],
            usage["prompt_tokens"]
        ]),
    }
}

fn honored(tables: &[&Table]) -> BTreeSet<String> {
    let names = tables.iter().flat_map(|table| table.honored());
    names.map(str::to_owned).collect()
}

/// Fails for a field that changes nothing, and for one of the honored ones that no probe is for.
///
/// `base`: what each request has, unless a probe says otherwise.
async fn check(
    worker: &Worker,
    path: &str,
    base: &Value,
    probes: &[Probe],
    honored: &BTreeSet<String>,
) {
    let ask = async |fields: &Value| {
        let request = merged(base.clone(), fields);
        let (status, answer) = worker.post(path, &request).await;
        assert_eq!(status, 200, "{request}: {answer}");
        answer
    };
    let mut without = BTreeMap::new();
    let mut without_effect = Vec::new();
    for (others, name, value) in probes {
        let key = others.to_string();
        if let Entry::Vacant(entry) = without.entry(key.clone()) {
            // The first fills the cache.
            ask(others).await;
            let [once, twice] = [ask(others).await, ask(others).await];
            assert_eq!(part(&once, name), part(&twice, name), "{others}");
            entry.insert(once);
        }
        let changed = ask(&merged(others.clone(), &field(name, value))).await;
        if part(&changed, name) == part(&without[&key], name) {
            without_effect.push(name);
        }
    }
    assert!(without_effect.is_empty(), "{path}: {without_effect:?}");

    let probed: BTreeSet<_> = probes.iter().map(|(_, name, _)| *name).collect();
    let others = [&ELSEWHERE[..], &ONLY_CHECKED[..]].concat();
    let missing: Vec<_> = honored
        .iter()
        .filter(|name| !probed.contains(name.as_str()) && !others.contains(&name.as_str()))
        .collect();
    assert!(missing.is_empty(), "{path}: no probe has {missing:?}");
}

#[tokio::test]
async fn each_honored_field_changes_a_completion() {
    let worker = Worker::smollm().await;
    let base = json!({"prompt": "The sea is", "max_tokens": 24, "seed": 7});
    let repeats = json!({"prompt": REPETITIVE});
    let probes = [sampling(), repetition(&repeats), completions(), form()].concat();
    let names = honored(&[&COMPLETIONS, &GENERATION_ADDITIONS, &COMPLETION_ADDITIONS]);
    check(&worker, "/v1/completions", &base, &probes, &names).await;
}

#[tokio::test]
async fn each_honored_field_changes_a_chat() {
    let folder = tempfile::tempdir().unwrap();
    let template = folder.path().join("template.jinja");
    std::fs::write(&template, [VERBOSITY, TEMPLATE.trim_end()].concat()).unwrap();
    let template = template.to_str().unwrap();
    let options = ["--context", "1024", "--chat-template", template];
    let worker = Worker::start(&model(SMOLLM), &options).await;
    worker.ready();

    let asks = |text: &str| json!({"role": "user", "content": text});
    let base = json!({"messages": [asks("Tell me about the sea.")], "max_tokens": 24, "seed": 7});
    let repeats = json!({
        "messages": [asks("Count to three again and again."), {"role": "assistant", "content": REPETITIVE}],
        "continue_final_message": true,
    });
    let probes = [sampling(), repetition(&repeats), chats(), form()].concat();
    let mut names = honored(&[&CHAT, &GENERATION_ADDITIONS, &CHAT_ADDITIONS]);
    // Each of its own fields has a probe.
    names.remove("reasoning");
    names.extend(REASONING.honored().map(|name| format!("reasoning.{name}")));
    check(&worker, "/v1/chat/completions", &base, &probes, &names).await;
}

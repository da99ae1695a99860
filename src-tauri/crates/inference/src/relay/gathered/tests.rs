mod malformed;

use super::*;
use crate::{
    caller::Caller,
    charge::Charge,
    metrics::Metrics,
    speed::SpeedMeter,
    stream_meter::{StreamMeter, StreamReading},
};
use axum::body::Bytes;
use serde_json::json;
use std::time::Instant;
use tierbar_core::{ModelId, TierId};

/// Reads a stream's events as values.
fn meter() -> StreamMeter {
    let answering = SpeedMeter::default().begin(&ModelId("small".to_owned()));
    let counted = Metrics::default().answer(&TierId::new("fast").unwrap(), Instant::now());
    let charge = Charge::new(Caller::default(), 0).attempt();
    StreamMeter::new(answering, counted, charge).reading(Form::Chat, StreamReading::Values)
}

fn gathered(events: &[Value]) -> Value {
    let mut gathering = AnswerParts::new(Form::Chat);
    for event in events {
        gathering.event(event.as_object().unwrap().clone());
    }
    gathering.whole()
}

#[test]
fn all_kinds_of_pieces_are_assembled() {
    let delta = |delta: Value| json!({"id": "1", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
    let call = |index: u64, more: Value| {
        let mut call = json!({"index": index});
        call.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        delta(json!({"tool_calls": [call]}))
    };
    let begins =
        |id: &str| json!({"id": id, "type": "function", "function": {"name": id, "arguments": ""}});
    let goes_on = |text: &str| json!({"function": {"arguments": text}});
    let whole = gathered(&[
        delta(json!({"role": "assistant", "content": ""})),
        delta(json!({"reasoning_content": "I "})),
        delta(json!({"reasoning_content": "think"})),
        delta(json!({"content": "Hel"})),
        delta(json!({"role": "assistant", "content": "lo"})),
        call(0, begins("a")),
        call(1, begins("b")),
        call(0, goes_on("{\"x\":")),
        call(1, goes_on("{}")),
        call(0, goes_on("1}")),
        json!({"id": "1", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls", "stop_reason": "x"}]}),
        json!({"id": "1", "choices": [], "usage": {"total_tokens": 9}, "timings": {"predicted_n": 3}}),
    ]);
    let calls = json!([
        {"index": 0, "id": "a", "type": "function", "function": {"name": "a", "arguments": "{\"x\":1}"}},
        {"index": 1, "id": "b", "type": "function", "function": {"name": "b", "arguments": "{}"}},
    ]);
    let message = json!({"role": "assistant", "content": "Hello", "reasoning_content": "I think", "tool_calls": calls});
    assert_eq!(
        whole,
        json!({
            "id": "1", "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls", "stop_reason": "x", "logprobs": null}],
            "usage": {"total_tokens": 9}, "timings": {"predicted_n": 3},
        })
    );
}

#[test]
fn a_call_in_the_older_form_is_assembled() {
    let piece = |piece: Value| json!({"choices": [{"delta": {"function_call": piece}}]});
    let whole = gathered(&[
        piece(json!({"name": "look", "arguments": ""})),
        piece(json!({"arguments": "{\"x\":"})),
        piece(json!({"arguments": "1}"})),
    ]);
    let called = &whole["choices"][0]["message"]["function_call"];
    assert_eq!(*called, json!({"name": "look", "arguments": "{\"x\":1}"}));
}

#[test]
fn calls_without_numbers_differ_by_their_ids() {
    let call = |id: &str| json!({"id": id, "function": {"name": "look", "arguments": "{}"}});
    let delta = |call: Value| json!({"choices": [{"delta": {"tool_calls": [call]}}]});
    let whole = gathered(&[delta(call("a")), delta(call("b"))]);
    let calls = &whole["choices"][0]["message"]["tool_calls"];
    assert_eq!(*calls, json!([call("a"), call("b")]));
}

#[test]
fn several_answers_are_kept_separate() {
    let piece = |index: u64, text: &str| json!({"choices": [{"index": index, "text": text, "logprobs": {"tokens": [text]}}]});
    let whole = gathered(&[piece(1, "b"), piece(0, "a"), piece(1, "c")]);
    let choice = |index: u64, text: &str, tokens: Value| json!({"text": text, "logprobs": {"tokens": tokens}, "index": index, "finish_reason": null});
    assert_eq!(
        whole["choices"],
        json!([
            choice(0, "a", json!(["a"])),
            choice(1, "bc", json!(["b", "c"]))
        ])
    );
    assert_eq!(whole["object"], "text_completion");
}

#[test]
fn comments_are_skipped_anywhere() {
    let said = |text: &str| {
        format!(
            "data: {}\n\n",
            json!({"choices": [{"delta": {"content": text}}]})
        )
    };
    let stream = [
        ": PROCESSING\n\n",
        &said("one "),
        &said("two "),
        ": still there\r\n\r\n",
        &said("three "),
        "event: ping\ndata: {\"type\": \"ping\"}\n\n",
        &said("four"),
        ":\n\ndata: [DONE]\n\n",
    ]
    .concat();
    for size in 1..=stream.len() {
        let mut gathering = AnswerParts::new(Form::Chat);
        let mut meter = meter();
        for piece in stream.as_bytes().chunks(size) {
            meter.pass(Bytes::copy_from_slice(piece));
            gathering.read_lines(meter.take_lines()).unwrap();
        }
        let whole = gathering.whole();
        assert_eq!(
            whole["choices"][0]["message"]["content"],
            "one two three four"
        );
    }
    let mut gathering = AnswerParts::new(Form::Chat);
    let mut meter = meter();
    let keepalive = "data: {\"type\":\"keepalive\"}\n\n";
    for (line, more) in [
        (": waiting\n\n", false),
        (keepalive, false),
        ("data: {}\n\n", true),
    ] {
        meter.pass(line.into());
        assert_eq!(gathering.read_lines(meter.take_lines()).unwrap(), more);
    }
}

#[test]
fn an_error_within_a_stream_is_returned() {
    let mut meter = meter();
    let error = json!({"error": {"message": "gone"}});
    meter.pass(format!("data: {error}\n\n").into());
    let read = AnswerParts::new(Form::Chat).read_lines(meter.take_lines());
    assert_eq!(read.unwrap_err().message, "gone");
}

#[test]
fn empty_and_unknown_fields_are_ignored() {
    let delta = |delta: Value| json!({"choices": [{"index": 0, "delta": delta, "logprobs": null, "text": "beside"}]});
    let call = |arguments: Value| json!({"role": null, "content": null, "tool_calls": [{"index": 0, "id": "a", "function": {"name": "look", "arguments": arguments}}]});
    let whole = gathered(&[
        delta(json!({"role": "assistant", "content": null, "tool_calls": null})),
        delta(call(json!(""))),
        delta(call(json!("{}"))),
        json!({"choices": [{"index": 0, "delta": {"tool_calls": null}, "logprobs": {"content": [1], "refusal": null}}]}),
        json!({"choices": [{"index": 0, "delta": {}, "logprobs": {"content": [2]}, "finish_reason": "tool_calls"}]}),
    ]);
    let call = json!({"index": 0, "id": "a", "function": {"name": "look", "arguments": "{}"}});
    let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    let choice = json!({"index": 0, "message": message, "logprobs": {"content": [1, 2]}, "finish_reason": "tool_calls"});
    assert_eq!(whole["choices"], json!([choice]));
    assert_eq!(whole["object"], "chat.completion");

    let called = |calls: Value| delta(json!({"tool_calls": calls}));
    for odd in [
        json!(["a", "a"]),
        json!([[], [1]]),
        json!([{"index": 0, "function": "x"}, {"index": 0, "function": "y"}]),
        json!([{"index": 0, "function": []}, {"index": 0, "function": {"arguments": []}}]),
        json!([{"index": 0, "id": "a"}, {"index": 0, "function": {"name": 7, "arguments": {}}}]),
        json!({"a": 1}),
        json!("a"),
    ] {
        let whole = gathered(&[called(odd.clone()), called(json!([null])), called(odd)]);
        assert_eq!(whole["choices"][0]["message"]["role"], "assistant");
    }
    for odd in [
        json!([7, "a", null, []]),
        json!({"delta": 1}),
        json!([{"delta": "a", "logprobs": [], "message": 1}]),
    ] {
        gathered(&[json!({"choices": odd}), json!({"choices": odd})]);
    }
}

#[test]
fn an_answers_values_are_bounded() {
    let lists: Value = (0..20_000).map(|_| json!([0])).collect();
    for form in [Form::Chat, Form::Messages, Form::Responses] {
        let mut gathering = AnswerParts::new(form);
        let mut event = |name: usize| {
            let (name, lists) = (name.to_string(), lists.clone());
            let event = match form {
                Form::Chat => json!({"choices": [{"delta": {name: lists}}]}),
                Form::Messages => json!({"type": "message_delta", "delta": {name: lists}}),
                Form::Responses => json!({"response": {"a": vec![lists; 20]}}),
            };
            gathering.event(event.as_object().unwrap().clone());
            gathering.count_memory()
        };
        assert!(form == Form::Responses || event(0).is_ok(), "{form:?}");
        let refused = (1..30).find_map(|name| event(name).err());
        assert_eq!(refused.unwrap().code, Code::Unreachable, "{form:?}");
    }
}

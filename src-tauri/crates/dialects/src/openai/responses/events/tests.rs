use super::*;
use crate::openai::responses::request::ResponseFields;
use crate::testing::{events_of, failed, gathered};
use tierbar_core::Code;
use tierbar_inference::ask::Stage;

fn text(pieces: Pieces) -> String {
    String::from_utf8(pieces.into_bytes().concat()).unwrap()
}

fn writer() -> AnswerWriter {
    let request: ResponseFields =
        serde_json::from_value(json!({"input": "Hi", "model": "fast"})).unwrap();
    AnswerWriter::new(
        request
            .into_chat(&tierbar_request_fields::RESPONSES, None, None)
            .unwrap()
            .1,
        None,
    )
}

/// Each event's data; its name is its type, and its number the place where it stands.
fn data(events: &str) -> Vec<Value> {
    let mut reply = Vec::new();
    for event in events.split_terminator("\n\n") {
        let (name, data) = event.split_once('\n').unwrap();
        let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(name.strip_prefix("event: "), data["type"].as_str());
        assert_eq!(data["sequence_number"], reply.len());
        reply.push(data);
    }
    reply
}

fn reply(chunks: impl IntoIterator<Item = Value>) -> Vec<Value> {
    let mut writer = writer();
    let events = events_of(chunks).into_iter();
    let out: String = events.map(|event| text(writer.event(event))).collect();
    data(&out)
}

fn delta(delta: Value) -> Value {
    json!({"model": "small", "choices": [{"delta": delta, "finish_reason": null}]})
}

fn finish(reason: &str) -> Value {
    json!({"choices": [{"delta": {}, "finish_reason": reason}]})
}

fn piece(index: usize, id: Option<&str>, arguments: &str) -> Value {
    delta(
        json!({"tool_calls": [{"index": index, "id": id, "function": {"name": id.map(|_| "look"), "arguments": arguments}}]}),
    )
}

fn names(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .map(|event| {
            event["type"]
                .as_str()
                .unwrap()
                .strip_prefix("response.")
                .unwrap()
        })
        .collect()
}

#[test]
fn reasoning_text_and_calls_are_items_with_all_their_events() {
    let events = reply([
        delta(json!({"role": "assistant", "content": null})),
        delta(json!({"reasoning_content": "hm"})),
        delta(json!({"content": "I "})),
        delta(json!({"content": "look."})),
        piece(0, Some("a"), "{\"x\""),
        piece(1, Some("b"), ""),
        piece(0, None, ":1}"),
        finish("tool_calls"),
        json!({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 9,
            "prompt_tokens_details": {"cached_tokens": 3}, "completion_tokens_details": {"reasoning_tokens": 2}}}),
    ]);
    assert_eq!(
        names(&events),
        [
            "created",
            "in_progress",
            "output_item.added",
            "content_part.added",
            "reasoning_text.delta",
            "reasoning_text.done",
            "content_part.done",
            "output_item.done",
            "output_item.added",
            "content_part.added",
            "output_text.delta",
            "output_text.delta",
            "output_text.done",
            "content_part.done",
            "output_item.done",
            "output_item.added",
            "function_call_arguments.delta",
            "output_item.added",
            "function_call_arguments.delta",
            "function_call_arguments.done",
            "output_item.done",
            "function_call_arguments.done",
            "output_item.done",
            "completed",
        ]
    );
    assert_eq!(events[0]["response"]["model"], "small");
    assert_eq!(events[0]["response"]["status"], "in_progress");
    let place = |event: &Value| (event["output_index"].as_u64(), event["item_id"].clone());
    let output = events.last().unwrap()["response"]["output"].clone();
    assert_eq!(place(&events[18]), (Some(2), output[2]["id"].clone()));
    let done: Vec<_> = events
        .iter()
        .filter(|event| event["type"] == "response.output_item.done")
        .collect();
    for (index, done) in done.iter().enumerate() {
        assert_eq!(done["item"], output[index]);
        assert_eq!(done["item"]["status"], "completed");
    }
    assert_eq!(
        output[0]["content"],
        json!([{"type": "reasoning_text", "text": "hm"}])
    );
    assert_eq!(output[1]["content"][0]["text"], "I look.");
    assert_eq!(
        (&output[2]["call_id"], &output[2]["arguments"]),
        (&json!("a"), &json!("{\"x\":1}"))
    );
    assert_eq!(
        (&output[3]["call_id"], &output[3]["name"]),
        (&json!("b"), &json!("look"))
    );
    assert_eq!(
        events.last().unwrap()["response"]["usage"],
        json!({
            "input_tokens": 5, "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 0},
            "output_tokens": 9, "output_tokens_details": {"reasoning_tokens": 2}, "total_tokens": 14,
        })
    );
}

#[test]
fn an_answer_that_is_cut_is_incomplete_and_so_is_its_last_item() {
    let thought = delta(json!({"reasoning_content": "hm"}));
    for (finish_reason, told_reason) in [
        ("length", "max_output_tokens"),
        ("content_filter", "content_filter"),
    ] {
        let events = reply([
            thought.clone(),
            delta(json!({"content": "a"})),
            finish(finish_reason),
        ]);
        let last = &events.last().unwrap();
        assert_eq!(last["type"], "response.incomplete");
        assert_eq!(last["response"]["status"], "incomplete");
        assert_eq!(
            last["response"]["incomplete_details"],
            json!({"reason": told_reason})
        );
        assert_eq!(last["response"]["completed_at"], Value::Null);
        assert_eq!(last["response"]["output"][0]["status"], "completed");
        assert_eq!(last["response"]["output"][1]["status"], "incomplete");
    }
}

#[test]
fn an_empty_answer_begins_and_ends() {
    let events = reply([]);
    assert_eq!(names(&events), ["created", "in_progress", "completed"]);
    assert_eq!(events[2]["response"]["model"], "fast");
    assert_eq!(events[2]["response"]["output"], json!([]));
    assert_eq!(events[2]["response"]["usage"], Value::Null);
}

#[test]
fn a_failure_is_the_last_event_and_tells_what_there_was() {
    let died = Error::new(Code::WorkerCrashed, "it died").hint("try again");
    let mut writer = writer();
    let waits = text(writer.event(Event::Progress(Stage::Load)));
    assert_eq!(waits, ": loading\n\n");
    let mut events = events_of([delta(json!({"content": "half"}))]);
    events.truncate(events.len() - 1);
    events.push(failed(died.clone()));
    let out: String = events
        .into_iter()
        .map(|event| text(writer.event(event)))
        .collect();
    let events = data(&out);
    let failed = &events.last().unwrap()["response"];
    assert_eq!(failed["status"], "failed");
    assert_eq!(
        failed["error"],
        json!({"message": "it died", "code": "worker_crashed", "hint": "try again"})
    );
    assert_eq!(failed["output"][0]["status"], "incomplete");
    assert_eq!(failed["output"][0]["content"][0]["text"], "half");
    let mut at_once = super::tests::writer();
    assert_eq!(
        names(&data(&text(at_once.event(super::tests::failed(died))))),
        ["created", "in_progress", "failed"]
    );
}

#[test]
fn calls_that_are_all_numbered_zero_are_told_apart_by_their_ids() {
    let events = reply([
        piece(0, Some("a"), "{}"),
        piece(0, Some("b"), "{}"),
        finish("tool_calls"),
    ]);
    let output = &events.last().unwrap()["response"]["output"];
    assert_eq!(
        (&output[0]["call_id"], &output[1]["call_id"]),
        (&json!("a"), &json!("b"))
    );
}

#[test]
fn log_probabilities_come_with_text_but_not_with_reasoning() {
    let with = |delta: Value, token: &str| json!({"choices": [{"delta": delta, "logprobs": {"content": [{"token": token, "logprob": -0.5, "bytes": [], "top_logprobs": []}]}}]});
    let events = reply([
        with(json!({"reasoning_content": "hm"}), "hm"),
        with(json!({}), "a"),
        with(json!({"content": "ab"}), "b"),
    ]);
    let reply = |list: &Value| -> Vec<_> {
        let list = list.as_array().unwrap().iter();
        list.map(|one| one["token"].as_str().unwrap().to_owned())
            .collect()
    };
    let delta = events
        .iter()
        .find(|event| event["type"] == "response.output_text.delta")
        .unwrap();
    assert_eq!(reply(&delta["logprobs"]), ["a", "b"]);
    let output = &events.last().unwrap()["response"]["output"];
    assert_eq!(reply(&output[1]["content"][0]["logprobs"]), ["a", "b"]);
}

#[test]
fn figures_of_another_form_are_none() {
    let odd = [json!(7), json!("a"), json!([1]), json!({"tokens": ["a"]})];
    let events = reply(
        odd.map(|logprobs| json!({"choices": [{"delta": {"content": "a"}, "logprobs": logprobs}]})),
    );
    let output = &events.last().unwrap()["response"]["output"];
    assert_eq!(output[0]["content"][0]["logprobs"], json!([]));
    assert_eq!(output[0]["content"][0]["text"], "aaaa");
}

#[test]
fn the_events_that_end_an_answer_share_its_text() {
    let words = "word ".repeat(1 << 12);
    let mut writer = writer();
    let chunks = [delta(json!({"content": words})), finish("stop")];
    let events = events_of(chunks).into_iter();
    let mut ends = Vec::new();
    for event in events {
        let ending = matches!(event, Event::Finished { .. });
        let pieces = writer.event(event).into_bytes();
        ends.extend(pieces.into_iter().filter(|_| ending));
    }
    let long = ends.iter().filter(|piece| piece.len() > words.len());
    let long: Vec<_> = long.map(|piece| piece.as_ptr()).collect();
    assert_eq!(long, [long[0]; 4]);
    assert_eq!(writer.output[0].text, "");
}

#[test]
fn a_whole_answer_holds_what_a_streamed_one_ends_with() {
    let answer = json!({
        "model": "small",
        "choices": [{"message": {"content": "I look.", "reasoning_content": "hm", "tool_calls": [
            {"id": "a", "function": {"name": "look", "arguments": "{}"}},
            {"function": {"name": "look", "arguments": "{}"}},
        ]}, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 9},
    });
    let whole: Value = serde_json::from_str(&text(writer().whole(gathered(&answer)))).unwrap();
    let kinds: Vec<_> = whole["output"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        ["reasoning", "message", "function_call", "function_call"]
    );
    assert_eq!(whole["status"], "completed");
    assert_eq!(whole["model"], "small");
    assert!(
        whole["output"][3]["call_id"]
            .as_str()
            .unwrap()
            .starts_with("call_")
    );
}

//! An answer's report of its chain: always in its metadata, and in its text where that is configured.

use super::tried_steps::TriedSteps;
use crate::{
    CHAT, answers, chat_text::has_form, original::Form, relay::attempt::ServerAnswer,
    request::Request,
};
use jiff::Timestamp;
use serde_json::{Value, json};
use tierbar_core::{TierId, json, json_edit};

const MARK: &str = "[Local Fallback] ";

/// Adds the field `tierbar` to an answer: in a stream, on the first event, empty or with the marker.
pub(super) fn annotate(
    mut sent: ServerAnswer,
    chain: &TierId,
    tried: &TriedSteps,
    marked: bool,
    request: &Request,
) -> ServerAnswer {
    let log = tried.log();
    let about = |tier: Value, model: Value| {
        let mut about = json!({
            "chain": chain, "tier": tier, "model": model,
            "fallback_from": log.fallback, "tried": log.steps,
        });
        if let Some(triage) = &log.triage {
            about["triage"] = json!(triage);
        }
        about
    };
    // What passes in its client's dialect is changed only where there is more to say than the headers do.
    let is_told = log.fallback.is_some() || !log.steps.is_empty() || log.triage.is_some();
    match &mut sent {
        ServerAnswer::Streaming(answer) => {
            let lease = answer.lease();
            let about = about(json!(lease.tier()), json!(lease.model()));
            match answer.meter.form {
                Form::Chat => {
                    let model = json!(lease.model());
                    answer.begin_with(&first_event(model, about, marked, request));
                }
                Form::Messages if is_told => {
                    answer.change_held(|held| tell_first(held, "message", &about));
                }
                Form::Responses if is_told => {
                    answer.change_held(|held| tell_first(held, "response", &about));
                }
                Form::Messages | Form::Responses => {}
            }
        }
        ServerAnswer::Whole(whole) => {
            let header = |name: &str| {
                let value = whole.headers.get(name);
                json!(value.and_then(|value| value.to_str().ok()))
            };
            let about = about(header("x-tierbar-tier"), header("x-tierbar-model"));
            if whole.form != Form::Chat && !is_told {
                return sent;
            }
            let mut changes = vec![("tierbar", Some(about))];
            if marked
                && whole.form == Form::Chat
                && let Some(choices) = json_edit::member(&whole.body, "choices")
                && let Ok(mut choices) = json::read(&whole.body[choices.value])
            {
                mark_choices(&mut choices);
                changes.push(("choices", Some(choices)));
            }
            whole.changes = changes;
        }
    }
    sent
}

/// The events with the report in this member of the first that has it.
fn tell_first(events: &[u8], name: &str, about: &Value) -> Option<Vec<u8>> {
    let mut begin = 0;
    for line in events.split_inclusive(|&byte| byte == b'\n') {
        let data = line
            .strip_prefix(b"data:")
            .map_or(&[][..], <[u8]>::trim_ascii_start);
        let object = json_edit::member(data, name).map(|member| member.value);
        if let Some(object) = object.filter(|object| data[object.clone()].starts_with(b"{")) {
            let change = [("tierbar", Some(about.clone()))];
            let told = json_edit::edit(&data[object.clone()], &change);
            let at = begin + line.len() - data.len();
            let (before, after) = (&events[..at + object.start], &events[at + object.end..]);
            return Some([before, &told, after].concat());
        }
        begin += line.len();
    }
    None
}

/// Whether the answer has to have a form, which a mark would break.
pub(super) fn is_bound(request: &Value) -> bool {
    let must_call = |choice: &Value| {
        choice.is_object()
            || choice
                .as_str()
                .is_some_and(|mode| !matches!(mode, "auto" | "none"))
    };
    has_form(request) || must_call(&request["tool_choice"]) || must_call(&request["function_call"])
}

fn mark_choices(choices: &mut Value) {
    for choice in choices.as_array_mut().into_iter().flatten() {
        let message = &choice["message"];
        let calls = message["tool_calls"].as_array();
        if calls.is_some_and(|calls| !calls.is_empty()) || message["function_call"].is_object() {
            continue;
        }
        for text in ["/message/content", "/text"] {
            if let Some(Value::String(text)) = choice.pointer_mut(text) {
                text.insert_str(0, MARK);
            }
        }
    }
}

fn first_event(model: Value, about: Value, marked: bool, request: &Request) -> Value {
    let text = if marked { MARK } else { "" };
    let is_chat = request.path == CHAT;
    let object = if is_chat {
        "chat.completion.chunk"
    } else {
        "text_completion"
    };
    let choice = |index: u64| match is_chat {
        true => {
            let delta = json!({"role": "assistant", "content": text});
            json!({"index": index, "delta": delta, "finish_reason": null})
        }
        false => json!({"index": index, "text": text, "finish_reason": null}),
    };
    // Each answer has its mark; the event itself needs one only.
    let answers = if marked {
        answers::requested_answers(request.path, request.content.fields()).unwrap_or(1)
    } else {
        1
    };
    let choices: Vec<_> = (0..answers).map(choice).collect();
    let mut event = json!({
        "id": format!("chain-{}", uuid::Uuid::new_v4().simple()),
        "object": object, "created": Timestamp::now().as_second(), "model": model, "choices": choices, "tierbar": about,
    });
    if request.content.fields()["stream_options"]["include_usage"] == true {
        event["usage"] = Value::Null;
    }
    event
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TEXT, hints::Hints};
    use std::time::Instant;

    fn first(path: &'static str, marked: bool, body: &'static str) -> Value {
        let request = Request::read(path, Hints::default(), body.into(), Instant::now());
        let request = request.unwrap();
        first_event(json!("m"), json!({}), marked, &request)
    }

    #[test]
    fn each_of_several_answers_has_its_mark() {
        let two = first(CHAT, true, r#"{"n": 2}"#);
        for index in [0, 1] {
            let choice = &two["choices"][index];
            assert_eq!(
                (&choice["index"], &choice["delta"]["content"]),
                (&json!(index), &json!(MARK))
            );
        }
        let count = |path, marked, body| {
            let event = first(path, marked, body);
            event["choices"].as_array().unwrap().len()
        };
        assert_eq!(count(CHAT, false, r#"{"n": 2}"#), 1);
        assert_eq!(count(TEXT, true, r#"{"n": null}"#), 1);
        assert_eq!(count(TEXT, true, r#"{"n": 2, "prompt": ["a", "b"]}"#), 4);
        assert_eq!(count(TEXT, true, r#"{"prompt": [1, 2]}"#), 1);
        let text = first(TEXT, true, "{}");
        assert_eq!(text["choices"][0]["text"], MARK);
        // Clients keep the first event's.
        assert!(text["created"].as_i64() > Some(1_700_000_000), "{text}");
    }

    #[test]
    fn an_answer_that_must_be_a_call_is_not_marked() {
        let function = json!({"type": "function", "function": {"name": "look"}});
        for (request, bound) in [
            (json!({}), false),
            (json!({"tool_choice": null}), false),
            (json!({"tool_choice": "auto"}), false),
            (json!({"tool_choice": "none"}), false),
            (json!({"tool_choice": "required"}), true),
            (json!({"tool_choice": function}), true),
            (json!({"function_call": {"name": "look"}}), true),
            (json!({"response_format": {"type": "text"}}), false),
            (json!({"response_format": {"type": "json_object"}}), true),
            (json!({"guided_json": {}}), true),
            (json!({"structured_outputs": {"regex": "a"}}), true),
        ] {
            assert_eq!(is_bound(&request), bound, "{request}");
        }
    }
}

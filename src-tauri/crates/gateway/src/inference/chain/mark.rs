//! An answer's report of its chain: always in its metadata, and in its text where that is configured.

use super::tried::Tried;
use crate::inference::{
    CHAT, answers,
    relay::{UpstreamRequest, attempt::Sent},
};
use serde_json::{Value, json};
use tierbar_core::TierId;

const MARK: &str = "[Local Fallback] ";

/// Adds the field `tierbar` to an answer: in a stream, on the first event, empty or with the marker.
pub(super) fn annotate(
    mut sent: Sent,
    chain: &TierId,
    tried: &Tried,
    marked: bool,
    request: &UpstreamRequest,
) -> Sent {
    let about = |tier: Value, model: Value| {
        let mut about = json!({
            "chain": chain, "tier": tier, "model": model,
            "fallback_from": tried.fallback(), "tried": tried.steps(),
        });
        if let Some(triage) = tried.triage() {
            about["triage"] = triage.into();
        }
        about
    };
    match &mut sent {
        Sent::Streaming(answer) => {
            let lease = answer.lease();
            let about = about(json!(lease.tier()), json!(lease.model()));
            let model = json!(lease.model());
            answer.begin_with(first_event(model, about, marked, request).into_bytes());
        }
        Sent::Whole(whole) => {
            let header = |name: &str| {
                let value = whole
                    .headers
                    .get(name)
                    .and_then(|value| value.to_str().ok());
                json!(value)
            };
            let about = about(header("x-tierbar-tier"), header("x-tierbar-model"));
            // What is no object is no answer of OpenAI's, and passes as it is.
            if let Ok(Value::Object(mut body)) = serde_json::from_slice(&whole.body) {
                if marked {
                    body.get_mut("choices").map(mark_choices);
                }
                body.insert("tierbar".to_owned(), about);
                whole.body = Value::Object(body).to_string().into_bytes();
            }
        }
    }
    sent
}

/// Whether the answer has to have a form, which a mark would break.
pub(super) fn is_bound(request: &Value) -> bool {
    let kind = request["response_format"]["type"].as_str();
    let must_call = |choice: &Value| {
        choice.is_object()
            || choice
                .as_str()
                .is_some_and(|mode| !matches!(mode, "auto" | "none"))
    };
    kind.is_some_and(|kind| kind != "text")
        || must_call(&request["tool_choice"])
        || must_call(&request["function_call"])
        || !request["json_schema"].is_null()
        || !request["grammar"].is_null()
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

fn first_event(model: Value, about: Value, marked: bool, request: &UpstreamRequest) -> String {
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
        answers::asked(request.path, request.content.fields()).unwrap_or(1)
    } else {
        1
    };
    let choices: Vec<_> = (0..answers).map(choice).collect();
    let event = json!({
        "id": format!("chain-{}", uuid::Uuid::new_v4().simple()),
        "object": object, "created": 0, "model": model, "choices": choices, "tierbar": about,
    });
    format!("data: {event}\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inference::{TEXT, caller::Caller, charge::Charge, content::Content};

    fn first(path: &'static str, marked: bool, body: &'static str) -> Value {
        let request = UpstreamRequest {
            path,
            content: Content::read(body.into()).unwrap().0,
            stream: true,
            keep_alive: None,
            charge: Charge::new(Caller::default(), 0),
            arrived: std::time::Instant::now(),
            trace: crate::metrics::Trace::default(),
        };
        let event = first_event(json!("m"), json!({}), marked, &request);
        serde_json::from_str(event.strip_prefix("data: ").unwrap().trim_end()).unwrap()
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
        ] {
            assert_eq!(is_bound(&request), bound, "{request}");
        }
    }
}

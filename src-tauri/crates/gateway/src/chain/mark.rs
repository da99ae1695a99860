//! What an answer says of the chain that it comes from: always in its metadata, and in its text where that is wanted.

use super::tried::Tried;
use crate::openai::{CHAT, relay::attempt::Sent};
use serde::Deserialize;
use serde_json::{Value, json};
use tierbar_core::TierId;

const MARK: &str = "[Local Fallback] ";

/// The answer, with a field `tierbar` of its own; in a stream it is on a first event without a word, or with the mark.
pub(super) fn told(
    mut sent: Sent,
    chain: &TierId,
    tried: &Tried,
    marked: bool,
    path: &str,
) -> Sent {
    let about = |tier: Value, model: Value| {
        json!({
            "chain": chain, "tier": tier, "model": model,
            "fallback_from": tried.fallback(), "tried": tried.steps(),
        })
    };
    match &mut sent {
        Sent::Streaming(answer) => {
            let lease = answer.lease();
            let about = about(json!(lease.tier()), json!(lease.model()));
            let model = json!(lease.model());
            answer.begin_with(first_event(model, about, marked, path).into_bytes());
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
pub(super) fn is_bound(request: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Form {
        #[serde(default)]
        response_format: Value,
        #[serde(default)]
        json_schema: Value,
        #[serde(default)]
        grammar: Value,
    }
    let Ok(form) = serde_json::from_slice::<Form>(request) else {
        return false;
    };
    let kind = form.response_format["type"].as_str();
    kind.is_some_and(|kind| kind != "text")
        || !form.json_schema.is_null()
        || !form.grammar.is_null()
}

fn mark_choices(choices: &mut Value) {
    for choice in choices.as_array_mut().into_iter().flatten() {
        if choice
            .pointer("/message/tool_calls")
            .is_some_and(|calls| !calls.is_null())
        {
            continue;
        }
        for text in ["/message/content", "/text"] {
            if let Some(Value::String(text)) = choice.pointer_mut(text) {
                text.insert_str(0, MARK);
            }
        }
    }
}

fn first_event(model: Value, about: Value, marked: bool, path: &str) -> String {
    let text = if marked { MARK } else { "" };
    let (object, choice) = if path == CHAT {
        let delta = json!({"role": "assistant", "content": text});
        (
            "chat.completion.chunk",
            json!({"index": 0, "delta": delta, "finish_reason": null}),
        )
    } else {
        (
            "text_completion",
            json!({"index": 0, "text": text, "finish_reason": null}),
        )
    };
    let event = json!({
        "id": format!("chain-{}", uuid::Uuid::new_v4().simple()),
        "object": object, "created": 0, "model": model, "choices": [choice], "tierbar": about,
    });
    format!("data: {event}\n\n")
}

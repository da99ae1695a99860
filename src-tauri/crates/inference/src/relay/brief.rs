//! Which requests are brief: they may pass an older one for another tier ([`Purpose::Brief`]).

use crate::{TOKENS, answers::requested_answers, content::Content, request::is_generated};
use serde_json::Value;
use tierbar_core::lease::Purpose;

/// Tokens per second of a model whose speed is not known: few that fit into a Mac's memory are slower.
const UNKNOWN_SPEED: f64 = 8.0;
/// Bytes of a prompt that take as long to read as a token takes to generate: about four make a token, and prefill is about ten
/// times as fast.
const PROMPT_BYTES_PER_TOKEN: usize = 40;

/// Returns whether the request's own bound makes its answer brief. `usual`: the model's speed, in tokens per second.
pub(super) fn is_brief(path: &str, content: &Content, usual: Option<f64>) -> bool {
    if path == TOKENS {
        return true;
    }
    let fields = content.fields();
    let Some(tokens) = most_tokens(fields).filter(|_| is_generated(path)) else {
        return false;
    };
    // How long an image takes, its bytes do not say.
    if !requested_answers(path, fields).is_ok_and(|answers| answers == 1) || content.has_media() {
        return false;
    }
    let prompt = content.prompt_bytes() / PROMPT_BYTES_PER_TOKEN;
    let tokens = tokens.saturating_add(prompt as u64);
    tokens as f64 <= usual.unwrap_or(UNKNOWN_SPEED) * Purpose::BRIEF.as_secs_f64()
}

/// The largest of the bounds, if there are any and all are numbers of tokens.
fn most_tokens(request: &Value) -> Option<u64> {
    let bounds = ["max_tokens", "max_completion_tokens", "n_predict"];
    let bounds = bounds.into_iter().map(|name| &request[name]);
    let bounds = bounds.filter(|bound| !bound.is_null());
    let bounds: Option<Vec<u64>> = bounds.map(Value::as_u64).collect();
    bounds?.into_iter().max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CHAT, EMBEDDINGS, TEXT};
    use serde_json::json;

    #[test]
    fn a_request_with_a_low_bound_is_brief() {
        let long = "word ".repeat(1000);
        let image =
            json!([{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]);
        for (path, request, usual, brief) in [
            (CHAT, json!({"max_tokens": 5}), None, true),
            (TEXT, json!({"prompt": "a", "n_predict": 5}), None, true),
            (TOKENS, json!({"messages": []}), None, true),
            (CHAT, json!({}), Some(1000.0), false),
            (CHAT, json!({"max_tokens": null}), Some(1000.0), false),
            (CHAT, json!({"max_tokens": -1}), Some(1000.0), false),
            (EMBEDDINGS, json!({"max_tokens": 5}), None, false),
            // A faster model says more in the same time.
            (CHAT, json!({"max_tokens": 100}), Some(12.0), false),
            (CHAT, json!({"max_tokens": 100}), Some(40.0), true),
            (
                CHAT,
                json!({"max_tokens": 5, "max_completion_tokens": 500}),
                Some(40.0),
                false,
            ),
            (CHAT, json!({"max_tokens": 5, "n": 2}), None, false),
            (
                TEXT,
                json!({"max_tokens": 5, "prompt": ["a", "b"]}),
                None,
                false,
            ),
            (
                CHAT,
                json!({"max_tokens": 5, "messages": [{"content": long}]}),
                Some(12.0),
                false,
            ),
            (
                CHAT,
                json!({"max_tokens": 5, "messages": [{"content": image}]}),
                Some(1000.0),
                false,
            ),
        ] {
            let (content, _) = Content::from_fields(request.clone()).unwrap();
            assert_eq!(is_brief(path, &content, usual), brief, "{path} {request}");
        }
    }
}

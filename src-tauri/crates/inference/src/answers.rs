//! How many answers a request asks for.

use super::{CHAT, EMBEDDINGS, RERANK, TEXT};
use serde_json::Value;
use tierbar_core::{Error, bad_request};

/// The most answers to one prompt, as in OpenAI's API; an engine may give fewer.
const MOST_EACH: u64 = 128;
/// The most answers to one request, and the most texts that are embedded or ranked.
const MOST: u64 = 2048;

/// Returns how many answers a request asks for: so many of each prompt, or a vector or score for each text.
pub(crate) fn requested_answers(path: &str, request: &Value) -> Result<u64, Error> {
    let each = match &request["n"] {
        n if !n.is_null() && [CHAT, TEXT].contains(&path) => n
            .as_u64()
            .filter(|n| (1..=MOST_EACH).contains(n))
            .ok_or_else(|| bad_request(format!("`n` must be an integer from 1 to {MOST_EACH}")))?,
        _ => 1,
    };
    let several = match path {
        TEXT => text_count(&request["prompt"]),
        EMBEDDINGS => text_count(&request["input"]),
        RERANK => text_count(&request["documents"]),
        _ => 1,
    };
    let all = each.saturating_mul(several);
    if all > MOST {
        let message = format!("the request asks for {all} answers and can ask for {MOST}");
        return Err(bad_request(message).hint("send several requests"));
    }
    Ok(all)
}

/// A list of numbers is one text, as its tokens.
fn text_count(value: &Value) -> u64 {
    let list = value.as_array();
    let several = list.filter(|list| !list.iter().any(Value::is_number));
    several.map_or(1, |list| list.len().max(1) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tierbar_core::Code;

    #[test]
    fn each_answer_to_each_prompt_counts() {
        let texts = vec!["a"; 2048];
        for (path, request, count) in [
            (CHAT, json!({}), 1),
            (CHAT, json!({"n": null}), 1),
            (CHAT, json!({"n": 128}), 128),
            (CHAT, json!({"prompt": ["a", "b"]}), 1),
            (TEXT, json!({"prompt": "a"}), 1),
            (TEXT, json!({"prompt": [1, 2, 3]}), 1),
            (TEXT, json!({"prompt": [[1], [2, 3]]}), 2),
            (TEXT, json!({"prompt": ["a", "b"], "n": 3}), 6),
            (TEXT, json!({"prompt": []}), 1),
            (EMBEDDINGS, json!({"input": "a"}), 1),
            (EMBEDDINGS, json!({"input": ["a", "b"], "n": 3}), 2),
            (EMBEDDINGS, json!({"input": texts}), 2048),
            (RERANK, json!({"documents": ["a", "b"]}), 2),
        ] {
            assert_eq!(
                requested_answers(path, &request).unwrap(),
                count,
                "{path} {request}"
            );
        }
    }

    #[test]
    fn more_than_any_server_gives_is_refused() {
        for (path, request) in [
            (CHAT, json!({"n": 0})),
            (CHAT, json!({"n": -1})),
            (CHAT, json!({"n": 129})),
            (CHAT, json!({"n": 1_000_000_000})),
            (CHAT, json!({"n": u64::MAX})),
            (CHAT, json!({"n": 2.5})),
            (CHAT, json!({"n": "2"})),
            (TEXT, json!({"prompt": vec!["a"; 17], "n": 128})),
            (EMBEDDINGS, json!({"input": vec!["a"; 2049]})),
        ] {
            let refused = requested_answers(path, &request).unwrap_err();
            assert_eq!(refused.code, Code::BadRequest, "{path}");
        }
    }
}

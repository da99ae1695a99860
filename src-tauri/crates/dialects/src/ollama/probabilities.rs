//! Probabilities of tokens: one list, as in OpenAI's chats. Its completions have a list for each part.

use serde_json::{Value, json};

/// Returns them as one list; `None` for none.
fn convert(mut logprobs: Value) -> Option<Value> {
    if let Some(content) = logprobs.get_mut("content") {
        return Some(content.take()).filter(|content| !content.is_null());
    }
    let list = |name: &str| logprobs.get(name).and_then(Value::as_array);
    let (tokens, chosen) = (list("tokens")?, list("token_logprobs")?);
    let rendered = tokens.iter().zip(chosen).enumerate();
    let rendered = rendered.map(|(index, (token, logprob))| {
        let mut rendered = json!({"token": token, "logprob": finite(logprob)});
        let top = list("top_logprobs").and_then(|top| top.get(index)?.as_object());
        if let Some(top) = top {
            let candidate = |(token, logprob): (&String, &Value)| json!({"token": token, "logprob": finite(logprob)});
            rendered["top_logprobs"] = top.iter().map(candidate).collect();
        }
        rendered
    });
    Some(rendered.collect())
}

/// Appends a server's probabilities to a list.
pub(super) fn append(to: &mut Option<Value>, more: Value) {
    match (to, convert(more)) {
        (_, None) => {}
        (Some(Value::Array(list)), Some(Value::Array(mut more))) => list.append(&mut more),
        (to, more) => *to = more,
    }
}

/// Completions have no probability of their first token when they echo; clients read numbers.
fn finite(logprob: &Value) -> f64 {
    logprob.as_f64().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chats_list_stays_as_it_is() {
        let content = json!([{"token": "a", "logprob": -0.25, "bytes": [97], "top_logprobs": []}]);
        assert_eq!(convert(json!({"content": content})), Some(content));
        for nothing in [json!(null), json!({"content": null}), json!({})] {
            assert_eq!(convert(nothing), None);
        }
    }

    #[test]
    fn a_completions_lists_become_one() {
        let logprobs = json!({
            "tokens": ["a", "b"], "token_logprobs": [-0.25, -2.0], "top_logprobs": [{"a": -0.25, "c": -1.5}],
        });
        let alternative = |token: &str, logprob: f64| json!({"token": token, "logprob": logprob});
        let mut first = alternative("a", -0.25);
        first["top_logprobs"] = json!([alternative("a", -0.25), alternative("c", -1.5)]);
        assert_eq!(
            convert(logprobs),
            Some(json!([first, alternative("b", -2.0)]))
        );
    }
}

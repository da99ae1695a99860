//! Fields that our own engine cannot follow, and files, which it cannot read: refused before anything is loaded. A tier that another
//! program serves gets them as they came, since its server may know them.

use super::{
    CHAT, EMBEDDINGS, Inference, RERANK, TEXT,
    request::{Request, is_generated},
};
use serde_json::{Map, Value};
use tierbar_core::{
    Error, TierId, bad_request,
    config::Engine,
    status::{EngineKind, TierStatus},
};
use tierbar_fetch::Remote;
use tierbar_request_fields::{self as fields, Table};

/// # Errors
/// `BadRequest` naming the field, if the tier's engine is ours.
pub fn check(inference: &Inference, tier: &TierId, request: &Request) -> Result<(), Error> {
    let (path, content) = (request.path, &request.content);
    let Value::Object(object) = content.fields() else {
        return Ok(());
    };
    let tables = tables(path);
    if tables.is_empty() {
        return Ok(());
    }
    let tiers = inference.tiers.snapshot();
    let ours = |status: &TierStatus| status.id == *tier && status.engine == EngineKind::Embedded;
    if !tiers.iter().any(ours) {
        return Ok(());
    }
    fields::check(tables, object)?;
    if is_generated(path) {
        fields::ollamas_option(object.get("options"))?;
    }
    if path != CHAT {
        return Ok(());
    }
    if content.has_files() && !request.omits_files() {
        return Err(file_refusal(inference));
    }
    if let Some(Value::Object(reasoning)) = object.get("reasoning") {
        fields::check_in("reasoning.", &[&fields::REASONING], reasoning)?;
    }
    check_alternatives(object)
}

/// Names a tier whose server is sent files, if there is one: `auto` sends none beyond this machine by itself.
fn file_refusal(inference: &Inference) -> Error {
    let config = inference.services.config();
    let takes_files = |engine: &Engine| match engine {
        Engine::Endpoint(engine) => !Remote::is_near(&engine.endpoint),
        _ => false,
    };
    let mut tiers = config.tiers.iter();
    let found = tiers.find(|(_, tier)| takes_files(&tier.engine));
    let text =
        "send its text, which `POST /tierbar/v1/documents/text` returns, or its pages as images";
    let hint = match found {
        Some((tier, _)) => format!("name the {tier} tier, whose server takes files; or {text}"),
        None => text.to_owned(),
    };
    bad_request("a message has a file, and no model here reads files").hint(hint)
}

/// Refuses alternatives to tokens without a request for their probabilities.
fn check_alternatives(chat: &Map<String, Value>) -> Result<(), Error> {
    let top = chat.get("top_logprobs").and_then(Value::as_f64);
    let wanted = chat.get("logprobs").is_some_and(|logprobs| {
        let counted = logprobs.as_f64().is_some();
        counted || *logprobs == Value::Bool(true)
    });
    let counted = chat.get("n_probs").and_then(Value::as_f64);
    if top > Some(0.0) && !wanted && counted.unwrap_or(0.0) <= 0.0 {
        let message = "`top_logprobs` is of no use without `logprobs`";
        return Err(bad_request(message).hint("set `logprobs` to true"));
    }
    Ok(())
}

fn tables(path: &str) -> &'static [&'static Table] {
    use fields::{
        CHAT_ADDITIONS, COMPLETION_ADDITIONS, COMPLETIONS, FOREIGN_TO_CHATS,
        FOREIGN_TO_COMPLETIONS, GENERATION_ADDITIONS,
    };
    match path {
        CHAT => &[
            &fields::CHAT,
            &GENERATION_ADDITIONS,
            &CHAT_ADDITIONS,
            &FOREIGN_TO_CHATS,
        ],
        TEXT => &[
            &COMPLETIONS,
            &GENERATION_ADDITIONS,
            &COMPLETION_ADDITIONS,
            &FOREIGN_TO_COMPLETIONS,
        ],
        EMBEDDINGS => &[&fields::EMBEDDINGS],
        RERANK => &[&fields::RERANK],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn alternatives_are_asked_for_with_probabilities() {
        for (chat, fine) in [
            (json!({}), true),
            (json!({"top_logprobs": 0}), true),
            (json!({"top_logprobs": null}), true),
            (json!({"top_logprobs": 3, "logprobs": true}), true),
            (json!({"top_logprobs": 3, "n_probs": 2}), true),
            (json!({"top_logprobs": 3}), false),
            (json!({"top_logprobs": 3, "logprobs": false}), false),
            (json!({"top_logprobs": 3, "logprobs": null}), false),
        ] {
            let checked = check_alternatives(chat.as_object().unwrap());
            assert_eq!(checked.is_ok(), fine, "{chat}");
        }
    }
}

//! Field names of another API that change the answer there. A client that sends one here expects the same effect.

use super::{Field, OLLAMA_OPTIONS, Table, harmless, refused, refused_unless};
use serde_json::Value;
use tierbar_core::{Error, bad_request};

const SOURCE: &str = "the other tables, where these names change the answer";
const AS_MESSAGE: &str = "send it as a message with the role system";
const FORMAT: Field = refused("format", "send `response_format`");
const MAX_OUTPUT_TOKENS: Field = refused("max_output_tokens", "send `max_tokens`");
const NUM_PREDICT: Field = refused("num_predict", "send `max_tokens`");
const STOP_SEQUENCES: Field = refused("stop_sequences", "send `stop`");
const OUTPUT_CONFIG: Field = refused(
    "output_config",
    "send `response_format` and `reasoning_effort`",
);
const OUTPUT_FORMAT: Field = refused("output_format", "send `response_format`");
const TEXT: Field = refused("text", "send `response_format` and `verbosity`");
const IMAGES: Field = refused(
    "images",
    "send them as parts of a message, of the type image_url",
);

/// To `POST /v1/chat/completions`, and with what the other two dialects pass on to it.
pub const FOREIGN_TO_CHATS: Table = Table {
    title: "Other APIs' names, sent to `/v1/chat/completions`",
    source: SOURCE,
    fields: &[
        FORMAT,
        IMAGES,
        refused("input", "send `messages`"),
        refused("instructions", AS_MESSAGE),
        MAX_OUTPUT_TOKENS,
        NUM_PREDICT,
        OUTPUT_CONFIG,
        OUTPUT_FORMAT,
        STOP_SEQUENCES,
        refused("system", AS_MESSAGE),
        TEXT,
        refused_unless(
            "thinking",
            &["null", "false", "{}", r#"{"type": "disabled"}"#],
            "send `think` or `reasoning_effort`",
        ),
    ],
};

/// To `POST /v1/completions`.
pub const FOREIGN_TO_COMPLETIONS: Table = Table {
    title: "Other APIs' names, sent to `/v1/completions`",
    source: SOURCE,
    fields: &[
        FORMAT,
        refused("images", "send them to /v1/chat/completions"),
        refused("input", "send `prompt`"),
        refused("instructions", "write it into `prompt`"),
        MAX_OUTPUT_TOKENS,
        refused("messages", "send them to /v1/chat/completions"),
        NUM_PREDICT,
        OUTPUT_CONFIG,
        OUTPUT_FORMAT,
        STOP_SEQUENCES,
        refused("system", "write it into `prompt`"),
        TEXT,
        refused("tools", "send them to /v1/chat/completions"),
    ],
};

/// To `POST /v1/responses`.
pub const FOREIGN_TO_RESPONSES: Table = Table {
    title: "Other APIs' names, sent to `/v1/responses`",
    source: SOURCE,
    fields: &[
        refused("messages", "send them as `input`"),
        ONE_ANSWER,
        refused("system", "send `instructions`"),
    ],
};

/// To `POST /v1/messages`.
pub const FOREIGN_TO_MESSAGES: Table = Table {
    title: "Other APIs' names, sent to `/v1/messages`",
    source: SOURCE,
    fields: &[refused("instructions", "send `system`"), ONE_ANSWER],
};

const ONE_ANSWER: Field = refused_unless(
    "n",
    &["null", "0", "1"],
    "leave it out: there is one answer",
);

const FORM: &str = "send `format`: \"json\" or a JSON schema";
const RESPONSE_FORMAT: Field = refused_unless(
    "response_format",
    &["null", r#"{"type": "text"}"#, "{}"],
    FORM,
);
const NOT_HERE: &str = "send it to /v1/chat/completions";
const AS_GUIDED_REGEX: &str = "send it to /v1/chat/completions as `guided_regex`";
const AS_GRAMMAR: &str = "send it to /v1/chat/completions as `grammar`";

/// To `POST /api/chat` and `POST /api/generate`.
pub const FOREIGN_TO_OLLAMA: Table = Table {
    title: "Other APIs' names, sent to `/api/chat` and `/api/generate`",
    source: SOURCE,
    fields: &[
        RESPONSE_FORMAT,
        refused("json_schema", FORM),
        refused("guided_json", FORM),
        refused("guided_choice", NOT_HERE),
        refused("guided_regex", NOT_HERE),
        refused("regex", AS_GUIDED_REGEX),
        refused("ebnf", AS_GRAMMAR),
        refused("guided_grammar", NOT_HERE),
        refused("grammar", NOT_HERE),
        refused("structured_outputs", NOT_HERE),
        refused("logit_bias", NOT_HERE),
        refused("functions", "send `tools`"),
        refused("reasoning_effort", "send `think`: a flag, or an effort"),
        refused("stop_sequences", "send `stop` in `options`"),
        ONE_ANSWER,
    ],
};

/// To `options` of these.
pub const FOREIGN_TO_OPTIONS: Table = Table {
    title: "Other APIs' names in `options`",
    source: SOURCE,
    fields: &[
        refused("format", "send it beside `options`"),
        RESPONSE_FORMAT,
        refused("json_schema", FORM),
        refused("grammar", NOT_HERE),
        refused("guided_json", FORM),
        refused("guided_choice", NOT_HERE),
        refused("guided_regex", NOT_HERE),
        refused("regex", AS_GUIDED_REGEX),
        refused("ebnf", AS_GRAMMAR),
        refused("guided_grammar", NOT_HERE),
        refused("structured_outputs", NOT_HERE),
        refused("samplers", "leave it out"),
        refused("logit_bias", NOT_HERE),
        harmless(
            "max_tokens",
            "as with Ollama; `num_predict` limits an answer",
        ),
        refused("n_predict", "send `num_predict`"),
    ],
};

/// Refuses Ollama's `options` in OpenAI's requests, which have those fields themselves. What only says how a model is loaded has no effect
/// in any.
///
/// # Errors
/// `BadRequest` naming the first that changes an answer.
pub fn ollamas_option(options: Option<&Value>) -> Result<(), Error> {
    let options = options.and_then(Value::as_object).into_iter().flatten();
    for (name, value) in options {
        let known = OLLAMA_OPTIONS.field(name);
        if known.is_some_and(Field::is_honored) && !value.is_null() {
            let message = format!("`options.{name}` is not supported");
            let ours = match name.as_str() {
                "num_predict" => "max_tokens",
                name => name,
            };
            return Err(
                bad_request(message).hint(format!("send `{ours}` beside `messages` or `prompt`"))
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_option_of_ollamas_that_changes_an_answer_is_refused() {
        for fine in [
            json!(null),
            json!({"num_ctx": 8192, "num_gpu": 9, "anything": 1}),
            json!({"temperature": null}),
        ] {
            assert!(ollamas_option(Some(&fine)).is_ok(), "{fine}");
        }
        assert!(ollamas_option(None).is_ok());
        assert!(ollamas_option(Some(&json!({"temperature": 0}))).is_err());
        let wrong = json!({"num_ctx": 8192, "num_predict": 9});
        let error = ollamas_option(Some(&wrong)).unwrap_err();
        assert_eq!(error.message, "`options.num_predict` is not supported");
        assert!(error.hint.unwrap().starts_with("send `max_tokens`"));
    }
}

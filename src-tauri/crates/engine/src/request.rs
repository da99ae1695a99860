//! OpenAI's requests, with llama-server's additions. Unknown fields are ignored, wrong types are refused by name.

use crate::llama::{Sampling, Token};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tierbar_core::{Code, Error};

#[derive(Debug, Deserialize)]
pub(crate) struct ChatRequest {
    messages: Vec<Value>,
    #[serde(default)]
    tools: Option<Vec<Value>>,
    #[serde(default)]
    chat_template_kwargs: Option<Value>,
    #[serde(flatten)]
    pub(crate) options: Options,
}

#[derive(Debug, Deserialize)]
pub(crate) struct CompletionRequest {
    prompt: CompletionPrompt,
    #[serde(flatten)]
    pub(crate) options: Options,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum CompletionPrompt {
    Text(String),
    Tokens(Vec<Token>),
    Texts(Vec<String>),
}

/// A prompt as the engine takes it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PromptInput {
    Text(String),
    Tokens(Vec<Token>),
}

/// What both kinds of request share.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Options {
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    max_tokens: Option<i64>,
    max_completion_tokens: Option<i64>,
    n_predict: Option<i64>,
    n: Option<u32>,
    temperature: Option<f32>,
    top_k: Option<i32>,
    top_p: Option<f32>,
    min_p: Option<f32>,
    typical_p: Option<f32>,
    repeat_penalty: Option<f32>,
    repeat_last_n: Option<i32>,
    frequency_penalty: Option<f32>,
    presence_penalty: Option<f32>,
    seed: Option<i64>,
    logit_bias: Option<BTreeMap<String, f32>>,
    stop: Option<Stop>,
    ignore_eos: Option<bool>,
    cache_prompt: Option<bool>,
    grammar: Option<String>,
    json_schema: Option<Value>,
    response_format: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StreamOptions {
    include_usage: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Stop {
    One(String),
    Many(Vec<String>),
}

impl ChatRequest {
    /// What the chat template is rendered from.
    pub(crate) fn template_input(&self) -> Result<Value, Error> {
        if self.messages.is_empty() {
            return Err(bad("`messages` is empty: send at least one message"));
        }
        if self.tools.as_ref().is_some_and(|tools| !tools.is_empty()) {
            return Err(bad("`tools` are not supported by this engine")
                .hint("send the request without `tools`"));
        }
        if self.messages.iter().any(has_media) {
            return Err(bad(
                "this model takes text only: an image or audio part was sent",
            ));
        }
        Ok(json!({
            "messages": self.messages,
            "chat_template_kwargs": self.chat_template_kwargs,
        }))
    }
}

fn has_media(message: &Value) -> bool {
    let parts = message.get("content").and_then(Value::as_array);
    parts.is_some_and(|parts| {
        parts
            .iter()
            .any(|part| part.get("type").is_some_and(|kind| kind != "text"))
    })
}

impl CompletionRequest {
    pub(crate) fn prompt(&mut self) -> Result<PromptInput, Error> {
        Ok(
            match std::mem::replace(&mut self.prompt, CompletionPrompt::Tokens(Vec::new())) {
                CompletionPrompt::Text(text) => PromptInput::Text(text),
                CompletionPrompt::Tokens(tokens) => PromptInput::Tokens(tokens),
                CompletionPrompt::Texts(mut texts) if texts.len() == 1 => {
                    PromptInput::Text(texts.remove(0))
                }
                CompletionPrompt::Texts(_) => {
                    return Err(bad(
                        "`prompt` holds several texts: send one request for each",
                    ));
                }
            },
        )
    }
}

impl Options {
    pub(crate) fn stream(&self) -> bool {
        self.stream.unwrap_or(false)
    }

    pub(crate) fn include_usage(&self) -> bool {
        self.stream_options
            .as_ref()
            .and_then(|options| options.include_usage)
            .unwrap_or(false)
    }

    pub(crate) fn cache_prompt(&self) -> bool {
        self.cache_prompt.unwrap_or(true)
    }

    pub(crate) fn ignore_eos(&self) -> bool {
        self.ignore_eos.unwrap_or(false)
    }

    /// Tokens to generate at most; `None`, or llama-server's -1, for as many as the context holds.
    pub(crate) fn max_tokens(&self) -> Result<Option<usize>, Error> {
        let asked = self.max_completion_tokens.or(self.max_tokens);
        match asked.or(self.n_predict) {
            None | Some(-1) => Ok(None),
            Some(asked) => usize::try_from(asked).map(Some).map_err(|_| {
                bad(format!(
                    "`max_tokens` is {asked}: send 0 or more, or leave it out"
                ))
            }),
        }
    }

    pub(crate) fn stops(&self) -> Vec<String> {
        match &self.stop {
            None => Vec::new(),
            Some(Stop::One(stop)) => vec![stop.clone()],
            Some(Stop::Many(stops)) => stops.clone(),
        }
    }

    pub(crate) fn sampling(&self, vocabulary: usize) -> Result<Sampling, Error> {
        if self.n.is_some_and(|n| n != 1) {
            return Err(bad("`n` must be 1: send one request for each answer"));
        }
        let base = Sampling::default();
        let sampling = Sampling {
            temperature: self.temperature.unwrap_or(base.temperature),
            top_k: self.top_k.unwrap_or(base.top_k),
            top_p: self.top_p.unwrap_or(base.top_p),
            min_p: self.min_p.unwrap_or(base.min_p),
            typical_p: self.typical_p.unwrap_or(base.typical_p),
            repeat_penalty: self.repeat_penalty.unwrap_or(base.repeat_penalty),
            repeat_last_n: self.repeat_last_n.unwrap_or(base.repeat_last_n),
            frequency_penalty: self.frequency_penalty.unwrap_or(base.frequency_penalty),
            presence_penalty: self.presence_penalty.unwrap_or(base.presence_penalty),
            // OpenAI's seeds are any integers; the sampler's are 32 bits wide.
            seed: self
                .seed
                .filter(|&seed| seed >= 0)
                .map_or(base.seed, |seed| (seed & 0xffff_ffff) as u32),
            logit_bias: self.biases(vocabulary)?,
            grammar: self.grammar()?,
        };
        let finite = [
            ("temperature", sampling.temperature),
            ("top_p", sampling.top_p),
            ("min_p", sampling.min_p),
            ("typical_p", sampling.typical_p),
            ("frequency_penalty", sampling.frequency_penalty),
            ("presence_penalty", sampling.presence_penalty),
        ];
        if let Some((name, value)) = finite.into_iter().find(|(_, value)| !value.is_finite()) {
            return Err(bad(format!("`{name}` is {value}: send a finite number")));
        }
        if !(sampling.repeat_penalty.is_finite() && sampling.repeat_penalty > 0.0) {
            return Err(bad("`repeat_penalty` must be above 0; 1 switches it off"));
        }
        // The penalty window is a ring that is allocated whole.
        if !(0..=1 << 20).contains(&sampling.repeat_last_n) {
            return Err(bad("`repeat_last_n` must be between 0 and 1048576"));
        }
        Ok(sampling)
    }

    /// GBNF for the answer; empty for none.
    fn grammar(&self) -> Result<String, Error> {
        let schema = self.schema()?;
        let grammar = match (&self.grammar, schema) {
            (Some(grammar), None) => grammar.clone(),
            (None, Some(schema)) => {
                let schema = schema.to_string();
                within("the JSON schema", &schema)?;
                llama_cpp_2::json_schema_to_grammar(&schema)
                    .map_err(|error| bad(format!("the JSON schema cannot be followed: {error}")))?
            }
            (None, None) => String::new(),
            (Some(_), Some(_)) => {
                return Err(bad("`grammar` and a JSON schema exclude each other"));
            }
        };
        within("the grammar", &grammar)?;
        Ok(grammar)
    }

    fn biases(&self, vocabulary: usize) -> Result<Vec<(Token, f32)>, Error> {
        let Some(biases) = &self.logit_bias else {
            return Ok(Vec::new());
        };
        biases
            .iter()
            .map(|(token, &bias)| match token.parse::<Token>() {
                Ok(id) if usize::try_from(id).is_ok_and(|id| id < vocabulary) => Ok((id, bias)),
                _ => Err(bad(format!(
                    "`logit_bias` names \"{token}\", which is no token of this model"
                ))),
            })
            .collect()
    }

    /// The JSON schema that the answer must follow, from any of the places where clients put it.
    fn schema(&self) -> Result<Option<Value>, Error> {
        let any_object = || json!({"type": "object"});
        let Some(format) = &self.response_format else {
            return Ok(self.json_schema.clone());
        };
        let schema = match format.get("type").and_then(Value::as_str) {
            None | Some("text") => return Ok(self.json_schema.clone()),
            Some("json_object") => format.get("schema").or(self.json_schema.as_ref()),
            Some("json_schema") => format
                .pointer("/json_schema/schema")
                .or_else(|| format.get("schema")),
            Some(other) => {
                return Err(bad(format!(
                    "`response_format.type` is \"{other}\": use text, json_object or json_schema"
                )));
            }
        };
        Ok(Some(
            schema
                .cloned()
                .filter(|schema| schema != &json!({}))
                .unwrap_or_else(any_object),
        ))
    }
}

/// llama.cpp's grammar parser recurses with the nesting, and its stack ends the process.
fn within(what: &str, text: &str) -> Result<(), Error> {
    const LONGEST: usize = 64 << 10;
    const DEEPEST: usize = 100;
    if text.len() > LONGEST {
        let length = text.len();
        return Err(bad(format!(
            "{what} has {length} bytes, and {LONGEST} are the limit"
        )));
    }
    let mut depth = 0_usize;
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEEPEST {
            return Err(bad(format!(
                "{what} is nested deeper than {DEEPEST} levels"
            )));
        }
    }
    Ok(())
}

fn bad(message: impl Into<String>) -> Error {
    Error::new(Code::BadRequest, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(value: Value) -> Options {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn defaults_are_those_of_llama_server() {
        let sampling = options(json!({})).sampling(10).unwrap();
        assert_eq!(sampling, Sampling::default());
    }

    #[test]
    fn the_newest_name_of_the_token_limit_wins() {
        assert_eq!(
            options(json!({"max_tokens": 5})).max_tokens().unwrap(),
            Some(5)
        );
        assert_eq!(
            options(json!({"max_tokens": 5, "max_completion_tokens": 7}))
                .max_tokens()
                .unwrap(),
            Some(7)
        );
        assert_eq!(
            options(json!({"n_predict": -1})).max_tokens().unwrap(),
            None
        );
        assert!(options(json!({"max_tokens": -5})).max_tokens().is_err());
    }

    #[test]
    fn values_that_would_trip_the_engine_are_refused() {
        for value in [
            json!({"repeat_penalty": 0.0}),
            json!({"repeat_last_n": -1}),
            json!({"repeat_last_n": 2_000_000_000}),
            json!({"logit_bias": {"99": 1.0}}),
            json!({"logit_bias": {"x": 1.0}}),
            json!({"n": 2}),
            json!({"temperature": 1e39}),
        ] {
            let error = options(value.clone()).sampling(10).unwrap_err();
            assert_eq!(error.code, Code::BadRequest, "{value}");
        }
    }

    #[test]
    fn a_schema_is_found_wherever_clients_put_it() {
        let schema = json!({"type": "array"});
        let openai =
            json!({"response_format": {"type": "json_schema", "json_schema": {"schema": schema}}});
        let llama = json!({"response_format": {"type": "json_object", "schema": schema}});
        for value in [openai, llama, json!({"json_schema": schema})] {
            assert_eq!(options(value).schema().unwrap(), Some(schema.clone()));
        }
        let any = options(json!({"response_format": {"type": "json_object"}}));
        assert_eq!(any.schema().unwrap(), Some(json!({"type": "object"})));
    }
}

//! What is read of OpenAI's answers, as chunks of a stream. Lenient: servers leave fields out, add their own, and send `null` for
//! nothing.

use http::StatusCode;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error as _, IgnoredAny},
};
use serde_json::Value;
use tierbar_chats::{ExpertReads, Speculation};
use tierbar_core::{Code, Error, json::short};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Message {
    #[serde(deserialize_with = "content")]
    content: Content,
    /// OpenAI's models write it in place of an answer in a fixed form.
    #[serde(deserialize_with = "text")]
    refusal: Option<String>,
    #[serde(deserialize_with = "text")]
    reasoning_content: Option<String>,
    /// The same by another name. Some servers send both.
    #[serde(deserialize_with = "text")]
    reasoning: Option<String>,
    pub tool_calls: Option<Vec<ToolCall>>,
}

/// What a message's `content` says.
#[derive(Debug, Default)]
struct Content {
    text: Option<String>,
    /// Of parts of the type `thinking`, as Mistral's servers send them.
    thoughts: Option<String>,
}

/// A tool call, or a piece of one.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ToolCall {
    /// Which of the answer's calls a piece belongs to.
    #[serde(deserialize_with = "or_nothing")]
    pub index: usize,
    pub id: Option<String>,
    #[serde(deserialize_with = "or_nothing")]
    pub function: Function,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Function {
    pub name: Option<String>,
    /// JSON as a text.
    #[serde(deserialize_with = "json")]
    pub arguments: Option<String>,
}

/// A chunk of an answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Chunk {
    pub model: Option<String>,
    #[serde(deserialize_with = "or_nothing")]
    pub choices: Vec<Choice>,
    /// [`Usage`], if it is known.
    pub usage: Option<Value>,
    /// [`Timings`], if they are known.
    pub timings: Option<Value>,
    #[serde(deserialize_with = "short")]
    pub sampling: Option<Sampling>,
    /// Of our own worker's first chunk.
    #[serde(deserialize_with = "short")]
    pub prompt_tokens: Option<u64>,
    /// The same, of those that were in memory already.
    #[serde(deserialize_with = "short")]
    pub cached_tokens: Option<u64>,
    pub error: Option<Value>,
    /// A chain's report of its answer, on its first chunk.
    pub tierbar: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Choice {
    /// Which of several answers it belongs to.
    #[serde(deserialize_with = "or_nothing")]
    pub index: u64,
    #[serde(deserialize_with = "or_nothing")]
    pub delta: Message,
    /// Of a completion.
    pub text: Option<String>,
    pub finish_reason: Option<String>,
    pub stop_reason: Option<Value>,
    pub logprobs: Option<Value>,
}

/// In tokens.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
pub struct Usage {
    #[serde(deserialize_with = "or_nothing")]
    pub prompt_tokens: u64,
    #[serde(deserialize_with = "or_nothing")]
    pub completion_tokens: u64,
    #[serde(deserialize_with = "or_nothing")]
    prompt_tokens_details: PromptDetails,
    #[serde(deserialize_with = "or_nothing")]
    completion_tokens_details: CompletionDetails,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
struct PromptDetails {
    #[serde(deserialize_with = "or_nothing")]
    cached_tokens: u64,
    /// Written to a cache.
    #[serde(alias = "cache_write_tokens", deserialize_with = "or_nothing")]
    cache_creation_tokens: u64,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
struct CompletionDetails {
    #[serde(deserialize_with = "or_nothing")]
    reasoning_tokens: u64,
}

/// llama-server's figures of one answer, and our own engine's.
#[derive(Debug, Default, Clone, Copy, PartialEq, Deserialize)]
#[serde(default)]
pub struct Timings {
    #[serde(deserialize_with = "or_nothing")]
    pub prompt_ms: f64,
    #[serde(deserialize_with = "or_nothing")]
    pub predicted_ms: f64,
    #[serde(deserialize_with = "or_nothing")]
    pub(crate) prompt_n: u64,
    #[serde(deserialize_with = "or_nothing")]
    pub(crate) cache_n: u64,
    #[serde(deserialize_with = "or_nothing")]
    pub(crate) predicted_n: u64,
    pub(crate) prompt_per_second: Option<f64>,
    pub(crate) predicted_per_second: Option<f64>,
    /// Those of our own worker.
    #[serde(deserialize_with = "short")]
    pub experts: Option<ExpertReads>,
    #[serde(deserialize_with = "short")]
    pub(crate) speculation: Option<Speculation>,
    /// Tokens that the context holds.
    #[serde(deserialize_with = "short")]
    pub n_ctx: Option<u64>,
}

/// How the tokens of an answer are chosen, as our own worker says on its first chunk.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct Sampling {
    pub temperature: f64,
    pub top_p: f64,
    pub presence_penalty: f64,
    pub frequency_penalty: f64,
}

impl Choice {
    /// Whether the model says something with it.
    pub(crate) fn has_content(&self) -> bool {
        let Message {
            content: Content { text, thoughts },
            refusal,
            reasoning_content,
            reasoning,
            tool_calls,
        } = &self.delta;
        let thoughts = [thoughts, reasoning_content, reasoning];
        let mut texts = [text, refusal, &self.text].into_iter().chain(thoughts);
        texts.any(|text| is_written(text.as_deref()))
            || tool_calls.as_ref().is_some_and(|calls| !calls.is_empty())
    }
}

/// Whether a text is there and not empty.
pub fn is_written(text: Option<&str>) -> bool {
    text.is_some_and(|text| !text.is_empty())
}

impl Message {
    /// Takes the reasoning out.
    pub fn thoughts(&mut self) -> Option<String> {
        let reasoning = [self.reasoning_content.take(), self.reasoning.take()];
        let mut thoughts = reasoning.into_iter().chain([self.content.thoughts.take()]);
        thoughts.find_map(written)
    }

    /// Takes the text out, or the refusal in its place.
    pub fn text(&mut self) -> Option<String> {
        let mut texts = [self.content.text.take(), self.refusal.take()].into_iter();
        texts.find_map(written)
    }
}

fn written(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

/// `null` is nothing.
fn or_nothing<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    value: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(value)?.unwrap_or_default())
}

/// A text, the texts and thoughts of a list of parts, or what a server writes without the quotes of a text.
fn content<'de, D: Deserializer<'de>>(value: D) -> Result<Content, D::Error> {
    let wrong = || D::Error::custom("`content` is not a text");
    let value = Value::deserialize(value)?;
    let thoughts = thoughts_of(&value);
    let text = match value {
        Value::Null => None,
        number @ (Value::Number(_) | Value::Bool(_)) => Some(number.to_string()),
        value => Some(text_of(value).ok_or_else(wrong)?),
    };
    Ok(Content { text, thoughts })
}

fn thoughts_of(content: &Value) -> Option<String> {
    let parts = content.as_array()?.iter();
    let thoughts = parts.filter(|part| part["type"] == "thinking");
    let thoughts = thoughts.filter_map(|part| text_of(part["thinking"].clone()));
    written(Some(thoughts.collect()))
}

/// A text, or the texts of a list of parts.
fn text<'de, D: Deserializer<'de>>(value: D) -> Result<Option<String>, D::Error> {
    Value::deserialize(value).map(text_of)
}

fn text_of(value: Value) -> Option<String> {
    let of_part = |part: &Value| part.as_str().or(part["text"].as_str()).map(str::to_owned);
    match value {
        Value::String(text) => Some(text),
        Value::Array(parts) => Some(parts.iter().filter_map(of_part).collect()),
        other => of_part(&other),
    }
}

/// Some servers write the JSON itself in place of its text.
fn json<'de, D: Deserializer<'de>>(value: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(value)? {
        Value::Null => None,
        Value::String(text) => Some(text),
        json => Some(json.to_string()),
    })
}

impl Usage {
    /// Prompt tokens that were in memory already.
    pub fn cached(&self) -> u64 {
        let cached = self.prompt_tokens_details.cached_tokens;
        cached.min(self.prompt_tokens)
    }

    /// Prompt tokens that were written to a cache, where the server counts them. They are none of those in memory.
    pub(crate) fn cache_written(&self) -> u64 {
        let written = self.prompt_tokens_details.cache_creation_tokens;
        written.min(self.prompt_tokens - self.cached())
    }

    /// Tokens of reasoning, where the server counts them.
    pub fn reasoning(&self) -> u64 {
        let reasoning = self.completion_tokens_details.reasoning_tokens;
        reasoning.min(self.completion_tokens)
    }
}

/// Returns what is read of a failure's body or event, which may have a whole answer beside it: each field, if it is short, or else
/// `null`.
pub(crate) fn failure(body: &[u8]) -> Value {
    #[derive(Default, Deserialize, Serialize)]
    #[serde(default)]
    struct Failure {
        #[serde(deserialize_with = "short")]
        error: Option<Value>,
        #[serde(deserialize_with = "short")]
        message: Option<Value>,
        #[serde(deserialize_with = "short")]
        detail: Option<Value>,
        #[serde(deserialize_with = "short")]
        request_id: Option<Value>,
    }
    let read: Failure = serde_json::from_slice(body).unwrap_or_default();
    serde_json::to_value(read).unwrap_or_default()
}

/// The error of a refusal: ours as it is, another server's with its own message and what its status means. An event of a stream has
/// status 200: its code stands for the status, if it is a number.
pub fn error(status: StatusCode, body: &[u8]) -> Error {
    let body = failure(body);
    Error::from_openai_body(&body).unwrap_or_else(|| {
        let rendered = ["/error/message", "/message", "/error", "/detail"];
        let rendered = rendered
            .iter()
            .find_map(|place| body.pointer(place)?.as_str())
            .unwrap_or("the model's server refused the request without an error message");
        Error::new(code(status, body.pointer("/error/code")), rendered)
    })
}

/// Whether the body of a 404 means the path, not something that the request names: an item, a model or a response.
pub(crate) fn is_of_unknown_path(body: &[u8]) -> bool {
    let error = &failure(body)["error"];
    let has = |field: &str| match error.get(field) {
        None | Some(Value::Null) => false,
        // llama-server and vLLM repeat the status.
        Some(value) => field != "code" || (*value != 404 && *value != "404"),
    };
    if has("param") || has("code") {
        return false;
    }
    let message = error.get("message").unwrap_or(error);
    let message = message.as_str().unwrap_or_default().to_lowercase();
    let mut words = message.split_whitespace().map(|word| {
        let is_mark = |letter: char| !letter.is_alphanumeric() && letter != '/';
        word.trim_matches(is_mark)
    });
    let names_one = |word| matches!(word, "item" | "items" | "model" | "models");
    !words.any(names_one) && !message.contains(" with id ")
}

/// The error of an answer that is not in OpenAI's form.
pub fn unreadable(error: &serde_json::Error) -> Error {
    let message = format!("the model's server did not answer in OpenAI's form: {error}");
    Error::new(Code::Unreachable, message)
}

/// Whether an event is a part of an answer.
pub(crate) fn has_choices(data: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Part {
        choices: Option<IgnoredAny>,
    }
    serde_json::from_slice::<Part>(data).is_ok_and(|event| event.choices.is_some())
}

fn code(status: StatusCode, rendered: Option<&Value>) -> Code {
    match rendered.and_then(Value::as_str) {
        Some("context_length_exceeded") => return Code::ContextExceeded,
        Some("rate_limit_exceeded" | "rate_limit_error" | "insufficient_quota") => {
            return Code::Overloaded;
        }
        _ => {}
    }
    let number = rendered
        .and_then(Value::as_u64)
        .and_then(|rendered| rendered.try_into().ok());
    let status = match status.as_u16() {
        200..=299 => number.unwrap_or_default(),
        status => status,
    };
    match status {
        // An endpoint's account is not its client's.
        401..=403 => Code::Unreachable,
        404 => Code::ModelUnknown,
        408 | 504 => Code::WorkerTimeout,
        413 => Code::PayloadTooLarge,
        429 => Code::Overloaded,
        400..=499 => Code::BadRequest,
        _ => Code::Unreachable,
    }
}

#[cfg(test)]
mod tests;

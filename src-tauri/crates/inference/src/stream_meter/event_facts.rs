//! What is read of an event, or of a whole answer, in each form: whether it says something, whether it ends, and what it took.

use super::chat::Payload;
use crate::{
    clouds::anthropic::{self, MessageUsage},
    metrics::TokenUse,
    original::Form,
    speed::Timings,
    wire::{self, Chunk, is_written},
};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use std::borrow::Cow;
use tierbar_core::{Error, json::short};

/// What policy needs to know of an event.
#[derive(Debug, Default)]
pub(super) struct EventFacts {
    /// The model says something.
    pub(super) words: bool,
    /// It has a reason to end.
    pub(super) finish: bool,
    /// It is the last.
    pub(super) ends: bool,
    /// A chat's: the model calls tools with it.
    pub(super) calls: bool,
    pub(super) has_choices: bool,
    pub(super) failure: Option<Error>,
    pub(super) used: Option<TokenUse>,
    /// The figures of a message, which its events add up.
    pub(super) message_usage: Option<MessageUsage>,
    pub(super) timings: Option<Timings>,
}

impl EventFacts {
    /// Reads an event's data.
    ///
    /// # Errors
    /// If it is no event in this form.
    pub(super) fn read(form: Form, data: &[u8]) -> Result<Self, serde_json::Error> {
        Ok(match form {
            Form::Chat => serde_json::from_slice::<Payload>(data)?.seen(data),
            Form::Messages => serde_json::from_slice::<MessageEvent>(data)?.seen(data),
            Form::Responses => serde_json::from_slice::<ResponseEvent>(data)?.seen(),
        })
    }

    /// Reads the same of an event that was parsed.
    ///
    /// # Errors
    /// If a chat's event has another form: its words would be lost.
    pub(super) fn of_value(form: Form, event: &Value) -> Result<Self, serde_json::Error> {
        let data = || event.to_string().into_bytes();
        let read = match form {
            Form::Chat => return Ok(Payload::deserialize(event)?.seen_of(data)),
            Form::Messages => MessageEvent::deserialize(event).map(|event| event.seen_of(data)),
            Form::Responses => ResponseEvent::deserialize(event).map(ResponseEvent::seen),
        };
        Ok(read.unwrap_or_default())
    }

    pub(super) fn of_chunk(chunk: &Chunk) -> Self {
        let choices = chunk.choices.iter();
        Self {
            words: choices.clone().any(wire::Choice::has_content),
            finish: choices
                .clone()
                .any(|choice| is_written(choice.finish_reason.as_deref())),
            ends: chunk.error.is_some(),
            failure: chunk.error.as_ref().map(failure),
            used: chunk
                .usage
                .as_ref()
                .filter(|usage| usage.is_object())
                .map(TokenUse::of_usage),
            timings: chunk
                .timings
                .as_ref()
                .and_then(|timings| Timings::deserialize(timings).ok()),
            ..Self::default()
        }
    }

    /// Reads a whole answer.
    ///
    /// # Errors
    /// If it is no JSON object.
    pub(super) fn of_whole(form: Form, answer: &[u8]) -> Result<Self, serde_json::Error> {
        Ok(match form {
            Form::Chat => serde_json::from_slice::<Payload>(answer)?.seen(answer),
            Form::Messages | Form::Responses => {
                let whole: WholeAnswer = serde_json::from_slice(answer)?;
                let used = whole.usage.as_ref();
                Self {
                    words: true,
                    used: match form {
                        Form::Messages => used.map(|used| MessageUsage::read(used).used()),
                        _ => used.map(TokenUse::of_response),
                    },
                    failure: whole
                        .error
                        .as_ref()
                        .filter(|error| !error.is_null())
                        .map(failure),
                    ..Self::default()
                }
            }
        })
    }
}

fn failure(error: &Value) -> Error {
    let body = json!({"error": error}).to_string();
    wire::error(StatusCode::OK, body.as_bytes())
}

#[derive(Debug, Deserialize)]
struct WholeAnswer {
    #[serde(default, deserialize_with = "short")]
    usage: Option<Value>,
    #[serde(default, deserialize_with = "short")]
    error: Option<Value>,
}

/// An event of Anthropic's. Kinds and fields that are not known say nothing here, and pass.
#[derive(Debug, Deserialize)]
struct MessageEvent<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Cow<'a, str>,
    #[serde(default)]
    message: Option<WholeAnswer>,
    #[serde(default)]
    content_block: Option<Block>,
    #[serde(default)]
    delta: Option<Block>,
    #[serde(default)]
    usage: Option<Value>,
}

/// A block, or a piece of one.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Block {
    #[serde(rename = "type")]
    kind: Option<String>,
    text: Value,
    thinking: Value,
    partial_json: Value,
    stop_reason: Value,
}

impl Block {
    fn has_words(&self) -> bool {
        match self.kind.as_deref() {
            Some("text" | "text_delta") => is_written(self.text.as_str()),
            Some("thinking" | "thinking_delta") => is_written(self.thinking.as_str()),
            Some("input_json_delta") => is_written(self.partial_json.as_str()),
            None | Some("signature_delta" | "citations_delta") => false,
            // A call, or what the server does by itself.
            Some(_) => true,
        }
    }
}

impl MessageEvent<'_> {
    fn seen(self, data: &[u8]) -> EventFacts {
        self.seen_of(|| data.to_vec())
    }

    fn seen_of(self, data: impl FnOnce() -> Vec<u8>) -> EventFacts {
        let mut seen = EventFacts::default();
        let mut usage = self.usage;
        match &*self.kind {
            "message_start" => usage = self.message.and_then(|message| message.usage),
            "content_block_start" => {
                seen.words = self.content_block.is_some_and(|block| block.has_words());
            }
            "content_block_delta" => seen.words = self.delta.is_some_and(|delta| delta.has_words()),
            "message_delta" => {
                seen.finish = self
                    .delta
                    .is_some_and(|delta| is_written(delta.stop_reason.as_str()));
            }
            "message_stop" => seen.ends = true,
            "error" => {
                seen.ends = true;
                let body = anthropic::openai_failure(&data()).to_string();
                seen.failure = Some(wire::error(StatusCode::OK, body.as_bytes()));
            }
            _ => {}
        }
        seen.message_usage = usage.as_ref().map(MessageUsage::read);
        seen
    }
}

/// An event of OpenAI's responses.
#[derive(Debug, Deserialize)]
struct ResponseEvent<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Cow<'a, str>,
    #[serde(default)]
    delta: Value,
    #[serde(default)]
    item: Option<Block>,
    #[serde(default)]
    response: Option<WholeAnswer>,
    #[serde(default)]
    error: Option<Value>,
    #[serde(default)]
    code: Value,
    #[serde(default)]
    message: Value,
}

impl ResponseEvent<'_> {
    fn seen(self) -> EventFacts {
        let mut seen = EventFacts::default();
        match &*self.kind {
            "response.completed" | "response.incomplete" => {
                (seen.finish, seen.ends) = (true, true);
            }
            "response.failed" => {
                seen.ends = true;
                let error = self
                    .response
                    .as_ref()
                    .and_then(|whole| whole.error.as_ref());
                seen.failure = Some(failure(error.unwrap_or(&Value::Null)));
            }
            "error" => {
                seen.ends = true;
                let own = json!({"code": self.code, "message": self.message});
                seen.failure = Some(failure(self.error.as_ref().unwrap_or(&own)));
            }
            "response.output_item.added" => {
                let kind = self.item.and_then(|item| item.kind);
                let begins = |kind: &str| matches!(kind, "message" | "reasoning");
                seen.words = kind.is_some_and(|kind| !begins(&kind));
            }
            kind => seen.words = kind.ends_with(".delta") && is_written(self.delta.as_str()),
        }
        let usage = self.response.and_then(|response| response.usage);
        seen.used = usage.as_ref().map(TokenUse::of_response);
        seen
    }
}

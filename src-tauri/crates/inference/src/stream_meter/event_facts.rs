//! What is read of an event, or of a whole answer, in each form: whether it says something, whether it ends, and what it took.

use super::chat::Payload;
use crate::{
    clouds::anthropic::{self, MessageUsage},
    metrics::TokenUse,
    original::Form,
    wire::{self, Chunk, Timings, is_written},
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
    pub(super) fn parse(form: Form, data: &[u8]) -> Result<Self, serde_json::Error> {
        Ok(match form {
            Form::Chat => serde_json::from_slice::<Payload>(data)?.facts(|| data.to_vec()),
            Form::Messages => serde_json::from_slice::<MessageEvent>(data)?.facts(|| data.to_vec()),
            Form::Responses => serde_json::from_slice::<ResponseEvent>(data)?.facts(),
        })
    }

    /// Reads the same of an event that was parsed. A chat's in another form is an error: its words would be lost.
    pub(super) fn of_value(form: Form, event: &Value) -> Result<Self, serde_json::Error> {
        let data = || event.to_string().into_bytes();
        let read = match form {
            Form::Chat => return Ok(Payload::deserialize(event)?.facts(data)),
            Form::Messages => MessageEvent::deserialize(event).map(|event| event.facts(data)),
            Form::Responses => ResponseEvent::deserialize(event).map(ResponseEvent::facts),
        };
        Ok(read.unwrap_or_default())
    }

    pub(super) fn of_chunk(chunk: &Chunk) -> Self {
        let (mut choices, timings) = (chunk.choices.iter(), chunk.timings.as_ref());
        Self {
            words: choices.clone().any(wire::Choice::has_content),
            finish: choices.any(|choice| is_written(choice.finish_reason.as_deref())),
            ends: chunk.error.is_some(),
            failure: chunk.error.as_ref().map(failure),
            used: chunk.usage.as_ref().and_then(TokenUse::of_usage),
            timings: timings.and_then(|timings| Timings::deserialize(timings).ok()),
            ..Self::default()
        }
    }

    /// Reads a whole answer.
    pub(super) fn of_whole(form: Form, answer: &[u8]) -> Result<Self, serde_json::Error> {
        Ok(match form {
            Form::Chat => serde_json::from_slice::<Payload>(answer)?.facts(|| answer.to_vec()),
            Form::Messages | Form::Responses => {
                let whole: WholeAnswer = serde_json::from_slice(answer)?;
                let (used, error) = (whole.usage.as_ref(), whole.error.as_ref());
                Self {
                    words: true,
                    used: match form {
                        Form::Messages => used.map(|used| MessageUsage::read(used).used()),
                        _ => used.map(TokenUse::of_response),
                    },
                    failure: error.filter(|error| !error.is_null()).map(failure),
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
    message: Option<WholeAnswer>,
    content_block: Option<Block>,
    delta: Option<Block>,
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
    fn facts(self, data: impl FnOnce() -> Vec<u8>) -> EventFacts {
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
    item: Option<Block>,
    response: Option<WholeAnswer>,
    error: Option<Value>,
    #[serde(default)]
    code: Value,
    #[serde(default)]
    message: Value,
}

impl ResponseEvent<'_> {
    fn facts(self) -> EventFacts {
        let mut seen = EventFacts::default();
        match &*self.kind {
            "response.completed" | "response.incomplete" => {
                (seen.finish, seen.ends) = (true, true);
            }
            "response.failed" => {
                seen.ends = true;
                let whole = self.response.as_ref();
                let error = whole.and_then(|whole| whole.error.as_ref());
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

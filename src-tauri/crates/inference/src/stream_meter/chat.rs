//! What is read of an event of OpenAI's completions while its bytes pass: no text is kept, since this is done for each token.

use super::event_facts::EventFacts;
use crate::{
    metrics::TokenUse,
    wire::{self, Timings},
};
use http::StatusCode;
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;
use std::fmt;
use tierbar_core::json::short;

/// The fields of an event, or of a whole answer, that are counted.
#[derive(Debug, Deserialize)]
pub(super) struct Payload {
    choices: Option<Choices>,
    #[serde(default, deserialize_with = "short")]
    timings: Option<Timings>,
    #[serde(default, deserialize_with = "short")]
    usage: Option<Value>,
    error: Option<IgnoredAny>,
}

impl Payload {
    /// `data`: the event itself.
    pub(super) fn facts(self, data: impl FnOnce() -> Vec<u8>) -> EventFacts {
        let fails = self.error.is_some();
        let has_choices = self.choices.is_some();
        let choices = self.choices.unwrap_or_default();
        EventFacts {
            words: choices.words,
            finish: choices.finish,
            calls: choices.calls,
            has_choices,
            ends: fails,
            failure: fails.then(|| wire::error(StatusCode::OK, &data())),
            // It has the cached tokens too, with any server.
            used: self.usage.as_ref().and_then(TokenUse::of_usage),
            timings: self.timings,
            ..EventFacts::default()
        }
    }
}

/// Whether any of the choices has content, calls, and a reason to end.
#[derive(Debug, Default)]
struct Choices {
    words: bool,
    calls: bool,
    finish: bool,
}

#[derive(Debug, Deserialize)]
struct Choice {
    /// Of an event.
    delta: Option<Delta>,
    /// Of a whole answer.
    #[serde(default)]
    message: NonEmpty,
    #[serde(default)]
    text: NonEmpty,
    #[serde(default)]
    finish_reason: NonEmpty,
}

#[derive(Debug, Deserialize)]
struct Delta {
    #[serde(default)]
    content: NonEmpty,
    #[serde(default)]
    refusal: NonEmpty,
    #[serde(default)]
    reasoning_content: NonEmpty,
    /// The same by another name.
    #[serde(default)]
    reasoning: NonEmpty,
    #[serde(default)]
    tool_calls: NonEmpty,
}

/// Whether a text or a list is there and not empty. It is not kept: this is done for each token.
#[derive(Debug, Default)]
struct NonEmpty(bool);

impl Choice {
    fn has_content(&self) -> bool {
        let delta = self.delta.as_ref().is_some_and(|delta| {
            let thought = delta.reasoning_content.0 || delta.reasoning.0;
            delta.content.0 || delta.refusal.0 || thought || delta.tool_calls.0
        });
        delta || self.message.0 || self.text.0
    }
}

impl<'de> Deserialize<'de> for Choices {
    fn deserialize<D: Deserializer<'de>>(choices: D) -> Result<Self, D::Error> {
        struct EachChoice;
        impl<'de> Visitor<'de> for EachChoice {
            type Value = Choices;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("choices")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut choices: A) -> Result<Choices, A::Error> {
                let mut all = Choices::default();
                while let Some(choice) = choices.next_element::<Choice>()? {
                    all.words |= choice.has_content();
                    all.calls |= choice.delta.is_some_and(|delta| delta.tool_calls.0);
                    all.finish |= choice.finish_reason.0;
                }
                Ok(all)
            }
        }
        choices.deserialize_seq(EachChoice)
    }
}

impl<'de> Deserialize<'de> for NonEmpty {
    fn deserialize<D: Deserializer<'de>>(text: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = NonEmpty;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON value")
            }
            fn visit_bool<E>(self, _: bool) -> Result<NonEmpty, E> {
                Ok(NonEmpty(true))
            }
            fn visit_i64<E>(self, _: i64) -> Result<NonEmpty, E> {
                Ok(NonEmpty(true))
            }
            fn visit_u64<E>(self, _: u64) -> Result<NonEmpty, E> {
                Ok(NonEmpty(true))
            }
            fn visit_f64<E>(self, _: f64) -> Result<NonEmpty, E> {
                Ok(NonEmpty(true))
            }
            fn visit_str<E>(self, text: &str) -> Result<NonEmpty, E> {
                Ok(NonEmpty(!text.is_empty()))
            }
            fn visit_unit<E>(self) -> Result<NonEmpty, E> {
                Ok(NonEmpty(false))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<NonEmpty, A::Error> {
                let mut written = false;
                while parts.next_element::<IgnoredAny>()?.is_some() {
                    written = true;
                }
                Ok(NonEmpty(written))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<NonEmpty, A::Error> {
                let mut written = false;
                while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
                    written = true;
                }
                Ok(NonEmpty(written))
            }
        }
        text.deserialize_any(Text)
    }
}

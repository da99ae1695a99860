//! Reads a stream as it passes: cuts it at line ends, counts tokens, and notes how it ends.

use super::{charge::Attempt, wire};
use crate::{
    inference::speed::{Answering, Timings},
    metrics::{Answer, Used},
};
use axum::{body::Bytes, http::StatusCode};
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;
use std::{fmt, time::Instant};
use tierbar_chat::context::ContextUse;
use tierbar_core::{Code, Error};

/// No event of a worker comes near it. A line beyond passes on unread.
const LONGEST_LINE: usize = 1 << 20;

/// The fields of an event, or of a whole answer, that are counted.
#[derive(Debug, Deserialize)]
struct Payload {
    #[serde(default)]
    choices: Choices,
    #[serde(default)]
    timings: Option<Timings>,
    #[serde(default)]
    usage: Option<Value>,
    #[serde(default)]
    error: Option<IgnoredAny>,
}

impl Payload {
    fn figures(&self, answering: &Answering, counted: &mut Answer) {
        if let Some(timings) = &self.timings {
            answering.timings(timings);
            counted.used(timings.used());
        }
        // Usage includes the cached tokens, from our engine and from endpoints alike.
        if let Some(usage) = self.usage.as_ref().filter(|usage| usage.is_object()) {
            counted.used(Used::of_usage(usage));
        }
    }

    /// What the answer took, in tokens, if it says so.
    fn tokens(&self) -> Option<u64> {
        let used = self.usage.as_ref();
        used.and_then(|usage| Used::of_usage(usage).tokens())
            .or(self.timings.as_ref().map(Timings::tokens))
    }
}

/// Whether any of the choices has content, and whether any has a reason to end.
#[derive(Debug, Default)]
struct Choices {
    words: bool,
    finish: bool,
}

#[derive(Debug, Deserialize)]
struct Choice {
    /// Of an event.
    #[serde(default)]
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
            delta.content.0 || thought || delta.tool_calls.0
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
                    all.finish |= choice.finish_reason.0;
                }
                Ok(all)
            }
            fn visit_unit<E>(self) -> Result<Choices, E> {
                Ok(Choices::default())
            }
        }
        choices.deserialize_any(EachChoice)
    }
}

impl<'de> Deserialize<'de> for NonEmpty {
    fn deserialize<D: Deserializer<'de>>(text: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = NonEmpty;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, a list, an object or null")
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

#[derive(Debug)]
pub(crate) struct StreamMeter {
    answering: Answering,
    counted: Answer,
    charge: Attempt,
    /// A line whose end has not arrived. It is held back, so that a worker that dies within a line leaves the
    /// client no half event.
    partial: Vec<u8>,
    spoken: bool,
    /// The event of an error.
    failure: Option<Vec<u8>>,
    /// The last event had a reason to end.
    finished: bool,
    ended: bool,
}

impl StreamMeter {
    pub(crate) fn new(answering: Answering, counted: Answer, charge: Attempt) -> Self {
        Self {
            answering,
            counted,
            charge,
            partial: Vec::new(),
            spoken: false,
            failure: None,
            finished: false,
            ended: false,
        }
    }

    /// Takes what has arrived and gives what may pass: all up to the last line's end.
    pub(crate) fn pass(&mut self, arrived: Bytes) -> Bytes {
        let end = arrived.iter().rposition(|&byte| byte == b'\n');
        let whole = end.map_or(0, |end| end + 1);
        // Nearly all comes in whole lines, and is not copied.
        let passing = if whole > 0 && self.partial.is_empty() {
            arrived.slice(..whole)
        } else {
            self.partial.extend_from_slice(&arrived[..whole]);
            if whole == 0 && self.partial.len() + arrived.len() <= LONGEST_LINE {
                Bytes::new()
            } else {
                std::mem::take(&mut self.partial).into()
            }
        };
        self.partial.extend_from_slice(&arrived[whole..]);
        for line in passing.split(|&byte| byte == b'\n') {
            if let Some(data) = line.strip_prefix(b"data:") {
                self.event(data.trim_ascii());
            }
        }
        passing
    }

    /// The stream ends with an error of ours.
    pub(crate) fn broke(&self, code: Code) {
        self.counted.broke(code);
    }

    /// The request has ended: answered, or with this error.
    pub(crate) fn settle(&self, failure: Option<Code>) {
        self.counted.settle(failure);
    }

    /// Whether there was any content.
    pub(crate) fn has_spoken(&self) -> bool {
        self.spoken
    }

    /// Whether it is an answer, even an empty one.
    pub(crate) fn has_answered(&self) -> bool {
        self.spoken || self.finished
    }

    /// The error that the stream has ended with.
    pub(crate) fn failure(&self) -> Option<Error> {
        let rendered = self.failure.as_ref()?;
        Some(wire::error(StatusCode::OK, rendered))
    }

    /// Whether the stream has had its last event, which may be an error.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// The connection has ended in order. What is still to pass if the answer is whole: some servers leave its last word out.
    pub(crate) fn end(&mut self) -> Option<Bytes> {
        if self.ended || !self.finished {
            return None;
        }
        self.ended = true;
        // The empty line ends an event that lacks it.
        Some(Bytes::from_static(b"\ndata: [DONE]\n\n"))
    }

    fn event(&mut self, data: &[u8]) {
        if data == b"[DONE]" {
            self.ended = true;
            return;
        }
        let Ok(payload) = serde_json::from_slice::<Payload>(data) else {
            return;
        };
        if payload.error.is_some() {
            self.failure = Some(data.to_vec());
            self.ended = true;
        }
        self.finished |= payload.choices.finish;
        if payload.choices.words {
            self.finished = payload.choices.finish;
            self.spoken = true;
            let now = Instant::now();
            self.answering.chunk(now);
            self.counted.chunk(now);
            self.charge.piece(data.len());
        }
        self.charge.report(payload.tokens());
        payload.figures(&self.answering, &mut self.counted);
    }
}

impl Drop for StreamMeter {
    fn drop(&mut self) {
        // As a refusal that has a status of its own.
        if self.ended && !self.has_answered() {
            self.charge.void();
        }
    }
}

/// Takes the figures from an answer that came whole, for which is then paid. Returns how much of the context it has used.
pub(crate) fn whole(
    answering: &Answering,
    counted: &mut Answer,
    mut charge: Attempt,
    answer: &[u8],
) -> Option<ContextUse> {
    let payload = serde_json::from_slice::<Payload>(answer);
    let Some(payload) = payload.ok().filter(|payload| payload.error.is_none()) else {
        charge.void();
        return None;
    };
    payload.figures(answering, counted);
    if payload.choices.words {
        charge.piece(answer.len());
    }
    charge.report(payload.tokens());
    payload.timings.as_ref().and_then(Timings::context)
}

#[cfg(test)]
mod tests;

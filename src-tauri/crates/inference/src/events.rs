//! What an answer is made of, and how it is read from what a server sends in OpenAI's form.

use super::{
    calls::Calls,
    relay::unstreamed,
    source::Source,
    stream_meter::Line,
    wire::{self, Choice, Chunk, Sampling},
};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use std::{collections::VecDeque, fmt};
use tierbar_chats::{ExpertReads, Speculation, context::ContextUse};
use tierbar_core::{Code, Error, json_edit::Change};

/// Bytes of one answer. Each token is an event, and may have figures of its own.
const LIMIT: usize = 256 << 20;

/// What an answer is made of. [`Event::Started`] comes before all that is generated; the last is [`Event::Finished`] or [`Event::AnswerFailure`].
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A server has begun to answer.
    Started(Source),
    /// More of an answer in the client's own dialect, as its server sent it, in place of all that follows. Only a request in another
    /// form than a chat has it.
    Passed(Bytes),
    /// Nothing is generated yet, or no more for some seconds.
    Progress(Stage),
    /// A chain's report of its answer: its steps, and which tier answers in whose place.
    Chain(Value),
    /// The server's own name of the model, if it sends one with its first event.
    Model(String),
    /// How the server samples, if it says so with its first event.
    Sampling(Sampling),
    /// More of the model's reasoning.
    Reasoning(String),
    /// More of the model's text.
    Text(String),
    /// More of a tool call.
    ToolCall(ToolCallPart),
    /// Log probabilities of the tokens in the next text, or in the next reasoning if no text comes first, in OpenAI's form.
    LogProbs(Value),
    /// What the answer has taken so far. The last one counts.
    Usage(Usage),
    /// The answer is complete.
    Finished {
        /// OpenAI's: `stop`, `length`, `tool_calls`.
        reason: String,
        /// The stop string that ended it, if the server reports it.
        stop: Option<String>,
    },
    /// The answer has ended before it was complete.
    Failed(AnswerFailure),
}

impl Event {
    /// Returns how much more of an answer it is, in bytes. What passes is counted elsewhere.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Reasoning(text) | Self::Text(text) => text.len(),
            Self::ToolCall(part) => part.arguments.len(),
            _ => 0,
        }
    }
}

/// What an answer waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Its tier.
    Load,
    /// Its next token.
    Prefill,
}

/// A piece of a tool call. The first has its name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolCallPart {
    /// Which of the answer's calls it belongs to, counted from 0.
    pub index: usize,
    pub id: Option<String>,
    pub name: Option<String>,
    /// More of the arguments' JSON.
    pub arguments: String,
}

/// What an answer has taken.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    pub prompt_tokens: u64,
    /// Those of the prompt that were in memory already.
    pub cached_tokens: u64,
    /// Those of the prompt that were written to a cache, where the server says so.
    pub cache_written_tokens: u64,
    pub completion_tokens: u64,
    /// Those of the completion that were reasoning.
    pub reasoning_tokens: u64,
    /// Where the engine measures it.
    pub prefill_seconds: Option<f64>,
    pub decode_seconds: Option<f64>,
    /// Of a mixture whose experts are read when they are chosen.
    pub experts: Option<ExpertReads>,
    pub speculation: Option<Speculation>,
    /// What the context holds, where the engine says so.
    pub context_tokens: Option<u64>,
}

impl Usage {
    /// Returns how much of its context the answer has used, where that is known.
    pub fn context(&self) -> Option<ContextUse> {
        let context_tokens = self.context_tokens.filter(|tokens| *tokens > 0)?;
        self.is_counted().then_some(ContextUse {
            prompt_tokens: self.prompt_tokens,
            answer_tokens: self.completion_tokens,
            context_tokens,
        })
    }

    /// Returns the speed of the decoding, in tokens per second, where the engine measures it. Some report 0 seconds for what they did not
    /// measure.
    pub fn tokens_per_second(&self) -> Option<f64> {
        let seconds = self.decode_seconds.filter(|seconds| *seconds > 0.0)?;
        #[expect(clippy::cast_precision_loss, reason = "far below what a double holds")]
        let tokens = self.completion_tokens as f64;
        Some(tokens / seconds)
    }

    /// Whether the server has counted tokens. Some only measure times.
    pub fn is_counted(&self) -> bool {
        self.prompt_tokens + self.completion_tokens > 0
    }
}

/// Why there is no answer, or no more of it.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerFailure {
    pub error: Error,
    /// The status of another program's server that has refused the request in its own words.
    pub status: Option<u16>,
    /// Its words, if they are in the client's own dialect.
    pub body: Option<Bytes>,
    /// Asked again later, it may be answered, whatever the error's code says.
    pub may_wait: bool,
    pub source: Source,
}

impl fmt::Display for AnswerFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for AnswerFailure {}

impl From<Error> for AnswerFailure {
    fn from(error: Error) -> Self {
        Self {
            error,
            status: None,
            body: None,
            may_wait: false,
            source: Source::default(),
        }
    }
}

impl From<AnswerFailure> for Error {
    fn from(failed: AnswerFailure) -> Self {
        failed.error
    }
}

/// A complete answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CompleteAnswer {
    pub source: Source,
    /// The pieces of [`Event::Passed`].
    pub passed: Vec<Bytes>,
    /// See [`Event::Chain`].
    pub chain: Option<Value>,
    /// See [`Event::Model`].
    pub model: Option<String>,
    /// See [`Event::Sampling`].
    pub sampling: Option<Sampling>,
    pub reasoning: String,
    pub text: String,
    pub calls: Vec<ToolCall>,
    /// The pieces of [`Event::LogProbs`].
    pub logprobs: Vec<Value>,
    pub usage: Usage,
    /// See [`Event::Finished`].
    pub reason: String,
    pub stop: Option<String>,
}

/// A complete tool call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolCall {
    pub id: Option<String>,
    pub name: String,
    /// An object in JSON, unless the model wrote something else.
    pub arguments: String,
}

impl ToolCall {
    /// The call with this number; a new one behind the last. `None` beyond that.
    pub fn of(calls: &mut Vec<Self>, index: usize) -> Option<&mut Self> {
        if index >= calls.len() {
            calls.push(Self::default());
        }
        calls.get_mut(index)
    }

    /// Adds a piece of this call. What is known of its id and name stays.
    pub fn add(&mut self, part: ToolCallPart) {
        self.id = self.id.take().or(part.id).filter(|id| !id.is_empty());
        if self.name.is_empty() {
            self.name = part.name.unwrap_or_default();
        }
        self.arguments.push_str(&part.arguments);
    }
}

impl CompleteAnswer {
    /// Returns the failure that ends the answer, if the event is one.
    pub fn add(&mut self, event: Event) -> Option<AnswerFailure> {
        match event {
            Event::Started(source) => self.source = source,
            Event::Progress(_) => {}
            Event::Passed(bytes) => self.passed.push(bytes),
            Event::Chain(report) => self.chain = Some(report),
            Event::Model(model) => self.model = Some(model),
            Event::Sampling(sampling) => self.sampling = Some(sampling),
            Event::Reasoning(text) => self.reasoning += &text,
            Event::Text(text) => self.text += &text,
            Event::ToolCall(part) => {
                if let Some(call) = ToolCall::of(&mut self.calls, part.index) {
                    call.add(part);
                }
            }
            Event::LogProbs(more) => self.logprobs.push(more),
            Event::Usage(usage) => {
                self.usage = usage;
                self.source.context = usage.context();
            }
            Event::Finished { reason, stop } => (self.reason, self.stop) = (reason, stop),
            Event::Failed(failed) => return Some(failed),
        }
        None
    }
}

/// Reads an answer in OpenAI's form. What it reads is appended to `events`.
#[derive(Debug, Default)]
pub struct Decoder {
    pub events: VecDeque<Event>,
    /// In bytes.
    arrived: usize,
    /// The first chunk has arrived.
    begun: bool,
    calls: Calls,
    usage: Usage,
    reason: Option<String>,
    stop: Option<String>,
}

impl Decoder {
    /// Reads more of a stream, of so many bytes. Returns whether it has ended with its last event.
    ///
    /// # Errors
    /// The error that the stream ends with; `Unreachable` if it is too long.
    pub fn read(&mut self, bytes: usize, lines: Vec<Line>) -> Result<bool, Error> {
        self.arrived += bytes;
        if self.arrived > LIMIT {
            let message = format!("the answer is longer than {} MiB", LIMIT >> 20);
            return Err(Error::new(Code::Unreachable, message));
        }
        for line in lines {
            match line {
                Line::Comment => self.events.push_back(Event::Progress(Stage::Prefill)),
                Line::Chunk(chunk) => self.chunk(*chunk),
                Line::Failure(error) => return Err(error),
                Line::Done => {
                    self.finish();
                    return Ok(true);
                }
                Line::Value(_) => {}
            }
        }
        Ok(false)
    }

    /// Reads an answer that is complete, with these changes.
    ///
    /// # Errors
    /// `Unreachable` if it cannot be read.
    pub fn read_whole(&mut self, answer: Bytes, changes: Vec<Change>) -> Result<(), Error> {
        let chunk = unstreamed::as_chunk(answer, changes).and_then(Chunk::deserialize);
        self.chunk(chunk.map_err(|error| wire::unreadable(&error))?);
        self.finish();
        Ok(())
    }

    /// The connection has ended in order, though some servers leave the last event out.
    ///
    /// # Errors
    /// `Internal` if the answer is not complete.
    pub fn end(&mut self) -> Result<(), Error> {
        if self.reason.is_none() {
            let message = "the answer ended without its last event";
            return Err(Error::new(Code::Internal, message));
        }
        self.finish();
        Ok(())
    }

    fn finish(&mut self) {
        // It follows from what the answer has, whatever its server says: loops run tools for it.
        let reason = match (self.reason.take(), self.calls.is_empty()) {
            (None, false) => "tool_calls".to_owned(),
            (Some(reason), false) if reason == "stop" => "tool_calls".to_owned(),
            (None, true) => "stop".to_owned(),
            (Some(reason), true) if reason == "tool_calls" => "stop".to_owned(),
            (Some(reason), _) => reason,
        };
        let stop = self.stop.take();
        self.events.push_back(Event::Finished { reason, stop });
    }

    fn chunk(&mut self, chunk: Chunk) {
        self.events.extend(chunk.tierbar.map(Event::Chain));
        self.count(chunk.usage, chunk.timings);
        if !std::mem::replace(&mut self.begun, true) {
            self.events.extend(chunk.sampling.map(Event::Sampling));
            if let Some(tokens) = chunk.prompt_tokens {
                self.usage.prompt_tokens = tokens;
                self.usage.cached_tokens = chunk.cached_tokens.unwrap_or(0).min(tokens);
                self.events.push_back(Event::Usage(self.usage));
            }
            let model = chunk.model.filter(|model| !model.is_empty());
            self.events.extend(model.map(Event::Model));
        }
        // Of several answers the first.
        for choice in chunk.choices.into_iter().filter(|choice| choice.index == 0) {
            self.choice(choice);
        }
    }

    fn count(&mut self, usage: Option<Value>, timings: Option<Value>) {
        let before = self.usage;
        // Figures of another form are none: no answer is lost for them.
        let usage = usage.and_then(|usage| wire::Usage::deserialize(usage).ok());
        let timings = timings.and_then(|timings| wire::Timings::deserialize(timings).ok());
        if let Some(usage) = usage {
            self.usage.prompt_tokens = usage.prompt_tokens;
            self.usage.cached_tokens = usage.cached();
            self.usage.cache_written_tokens = usage.cache_written();
            self.usage.completion_tokens = usage.completion_tokens;
            self.usage.reasoning_tokens = usage.reasoning();
        }
        if let Some(timings) = timings {
            self.usage.prefill_seconds = Some(timings.prompt_ms / 1000.0);
            self.usage.decode_seconds = Some(timings.predicted_ms / 1000.0);
            self.usage.experts = timings.experts;
            self.usage.speculation = timings.speculation;
            self.usage.context_tokens = timings.n_ctx;
        }
        if self.usage != before {
            self.events.push_back(Event::Usage(self.usage));
        }
    }

    fn choice(&mut self, mut choice: Choice) {
        let reasoning = choice.delta.thoughts();
        let text = choice.delta.text().or(choice.text);
        let text = text.filter(|text| !text.is_empty());
        let logprobs = choice.logprobs.filter(|logprobs| !logprobs.is_null());
        let mut logprobs = logprobs.map(Event::LogProbs);
        if text.is_none() {
            self.events.extend(logprobs.take());
        }
        self.events.extend(reasoning.map(Event::Reasoning));
        self.events.extend(logprobs);
        self.events.extend(text.map(Event::Text));
        for call in choice.delta.tool_calls.into_iter().flatten() {
            let Some(index) = self.calls.number(&call) else {
                continue;
            };
            self.events.push_back(Event::ToolCall(ToolCallPart {
                index,
                id: call.id,
                name: call.function.name,
                arguments: call.function.arguments.unwrap_or_default(),
            }));
        }
        if choice.finish_reason.is_some() {
            self.reason = choice.finish_reason;
            let stop = choice.stop_reason.as_ref().and_then(Value::as_str);
            self.stop = stop.map(str::to_owned);
        }
    }
}

#[cfg(test)]
pub mod tests;

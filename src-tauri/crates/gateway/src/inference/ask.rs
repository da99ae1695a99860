//! The one way to an answer, beneath HTTP: a request goes in, events come out. Dropping the answer cancels it.

use super::{
    Inference,
    caller::Caller,
    calls::Calls,
    lines::Lines,
    prompts,
    relay::{
        self, Begun, First, Way,
        attempt::{Sent, Whole},
        streaming::{self, Beginning, WAITING_PERIOD},
        unstreamed,
    },
    request::Request,
    source::Source,
    wire::{self, Chunk, ChunkChoice},
};
use axum::http::StatusCode;
use futures_util::{Stream, StreamExt, stream};
use serde_json::Value;
use std::{
    collections::VecDeque,
    fmt,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll},
};
use tierbar_core::{Code, Error};
use tokio::time::timeout;

/// What an answer is made of. [`Event::Started`] comes before all that is generated; the last is [`Event::Finished`] or [`Event::Failed`].
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A server has begun to answer.
    Started(Source),
    /// Nothing is generated yet, or no more for some seconds.
    Progress(Stage),
    /// What a chain reports of its answer: its steps, and who answers in whose place.
    Chain(Value),
    /// More of what the model thinks.
    Reasoning(String),
    /// More of what the model says.
    Text(String),
    /// More of a call of a tool.
    ToolCall(ToolCallPart),
    /// Log probabilities of the tokens that come with this piece, in OpenAI's form.
    LogProbs(Value),
    /// Once, before the end, where the server counts.
    Usage(Usage),
    /// The answer is whole. The reason is OpenAI's: `stop`, `length`, `tool_calls`.
    Finished { reason: String },
    /// The answer has ended before it was whole.
    Failed(Failed),
}

/// What an answer waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Its tier.
    Load,
    /// Its next token.
    Prefill,
}

/// A piece of a call of a tool. The first has its name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolCallPart {
    /// Which of the answer's calls it belongs to.
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
    /// Of the prompt, those that were in memory already.
    pub cached_tokens: u64,
    pub completion_tokens: u64,
    /// Of the completion, those that were thoughts.
    pub reasoning_tokens: u64,
    /// Where the engine measures it.
    pub prefill_seconds: Option<f64>,
    pub decode_seconds: Option<f64>,
}

/// Why there is no answer, or no more of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Failed {
    pub error: Error,
    /// The status of another program's server that has refused the request in its own words.
    pub status: Option<u16>,
    /// Asked again later, it may be answered, whatever the error's code says.
    pub may_wait: bool,
    pub source: Source,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for Failed {}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Self {
        failed.error
    }
}

/// An answer as it comes.
pub struct Answer(Pin<Box<dyn Stream<Item = Event> + Send>>);

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").finish_non_exhaustive()
    }
}

impl Stream for Answer {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        self.0.poll_next_unpin(context)
    }
}

/// An answer that is whole.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Gathered {
    pub source: Source,
    pub chain: Option<Value>,
    pub text: String,
    pub usage: Usage,
    /// See [`Event::Finished`].
    pub reason: String,
}

impl Answer {
    /// The text of the whole answer, with what it took.
    ///
    /// # Errors
    /// If it breaks off.
    pub async fn gather(mut self) -> Result<Gathered, Failed> {
        let mut whole = Gathered::default();
        while let Some(event) = self.next().await {
            match event {
                Event::Started(source) => whole.source = source,
                Event::Chain(report) => whole.chain = Some(report),
                Event::Text(text) => whole.text += &text,
                Event::Usage(usage) => whole.usage = usage,
                Event::Finished { reason } => whole.reason = reason,
                Event::Failed(failed) => return Err(failed),
                Event::Progress(_)
                | Event::Reasoning(_)
                | Event::ToolCall(_)
                | Event::LogProbs(_) => {}
            }
        }
        Ok(whole)
    }
}

impl Inference {
    /// Asks for an answer. A request that streams has its answer at once if nothing plain, such as a missing file, keeps it from
    /// beginning; one that does not waits until the answer is whole.
    ///
    /// # Errors
    /// `ModelUnknown`, `ModelMissing` or `BadRequest` for a request that no tier can answer, and whatever else keeps the answer from
    /// beginning.
    pub async fn ask(self: &Arc<Self>, request: Request, caller: Caller) -> Result<Answer, Failed> {
        prompts::log(
            self.services.config().log,
            request.path,
            request.content.bytes(),
        );
        let unrouted = |error| Failed {
            error,
            status: None,
            may_wait: false,
            source: Source::default(),
        };
        let begun = relay::begin(self, request, caller).await;
        let Begun {
            beginning,
            stream,
            way,
        } = begun.map_err(unrouted)?;
        let mut reading = Reading::new(way);
        match relay::first(beginning, stream).await {
            Err(error) => return Err(reading.failed(error, None)),
            Ok(First::Later(beginning)) => reading.state = State::Beginning(beginning),
            Ok(First::Sent(Sent::Whole(refused))) if !refused.status.is_success() => {
                return Err(reading.refused(&refused));
            }
            Ok(First::Sent(mut sent)) => {
                if let (Sent::Streaming(answer), false) = (&mut sent, stream) {
                    let held = answer.hold_to_first_word().await;
                    held.map_err(|failed| reading.failed(failed.error, None))?;
                }
                reading.begin(sent);
            }
        }
        let events = stream::unfold(reading, |mut reading| async {
            let event = reading.next().await?;
            Some((event, reading))
        });
        Ok(Answer(Box::pin(events)))
    }
}

enum State {
    Beginning(Beginning),
    Streaming(Box<streaming::Answer>),
    Over,
}

/// An answer that is being turned into events.
struct Reading {
    state: State,
    way: Way,
    /// A line whose end has not come.
    lines: Lines,
    ready: VecDeque<Event>,
    calls: Calls,
    usage: Option<Usage>,
    reason: Option<String>,
}

impl Reading {
    fn new(way: Way) -> Self {
        Self {
            state: State::Over,
            way,
            lines: Lines::default(),
            ready: VecDeque::new(),
            calls: Calls::default(),
            usage: None,
            reason: None,
        }
    }

    fn failed(&self, error: Error, status: Option<StatusCode>) -> Failed {
        Failed {
            error,
            status: status.map(|status| status.as_u16()),
            may_wait: self.way.may_wait(),
            source: self.way.source(),
        }
    }

    /// A worker's refusal is an error of ours, another server's has a status and words of its own.
    fn refused(&self, refused: &Whole) -> Failed {
        let body: Value = serde_json::from_slice(&refused.body).unwrap_or_default();
        let ours = Error::from_openai_body(&body).is_some();
        let error = wire::error(refused.status, &refused.body);
        let who = Source::of_headers(&refused.headers);
        let failed = self.failed(error, (!ours).then_some(refused.status));
        Failed {
            source: Source {
                tier: who.tier,
                model: who.model,
                ..failed.source
            },
            ..failed
        }
    }

    fn begin(&mut self, sent: Sent) {
        let who = match &sent {
            Sent::Streaming(answer) => Source {
                tier: Some(answer.lease().tier().clone()),
                model: Some(answer.lease().model().clone()),
                ..Source::default()
            },
            Sent::Whole(whole) => Source::of_headers(&whole.headers),
        };
        self.ready.push_back(Event::Started(Source {
            tier: who.tier,
            model: who.model,
            ..self.way.source()
        }));
        match sent {
            Sent::Streaming(answer) => self.state = State::Streaming(answer),
            Sent::Whole(whole) if wire::has_choices(&whole.body) => {
                self.state = State::Over;
                self.read(&unstreamed::as_events(&whole.body));
            }
            Sent::Whole(_) => {
                let message = "the answer is not a completion";
                let failed = self.failed(Error::new(Code::Corrupt, message), None);
                self.fail(failed);
            }
        }
    }

    fn fail(&mut self, failed: Failed) {
        self.state = State::Over;
        self.ready.push_back(Event::Failed(failed));
    }

    /// The next event; `None` after the last.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            match &mut self.state {
                State::Over => return None,
                State::Beginning(beginning) => {
                    let Ok(sent) = timeout(WAITING_PERIOD, &mut beginning.sent).await else {
                        return Some(Event::Progress(
                            match beginning.loaded.load(Ordering::Relaxed) {
                                true => Stage::Prefill,
                                false => Stage::Load,
                            },
                        ));
                    };
                    let State::Beginning(beginning) =
                        std::mem::replace(&mut self.state, State::Over)
                    else {
                        return None;
                    };
                    let failed = match sent {
                        Ok(Sent::Whole(refused)) if !refused.status.is_success() => {
                            self.refused(&refused)
                        }
                        Ok(sent) => {
                            self.begin(sent);
                            continue;
                        }
                        Err(error) => self.failed(error, None),
                    };
                    (beginning.failed)(failed.error.code);
                    self.fail(failed);
                }
                State::Streaming(answer) => match answer.next().await {
                    Ok(bytes) => self.read(&bytes),
                    Err(None) => self.end(),
                    Err(Some(error)) => {
                        answer.broke(error.code);
                        let failed = self.failed(error, None);
                        self.fail(failed);
                    }
                },
            }
        }
    }

    /// The connection has ended in order, though some servers leave the last word out.
    fn end(&mut self) {
        if self.reason.is_some() {
            return self.finish();
        }
        let error = Error::new(Code::Internal, "the answer ended without its last event");
        let failed = self.failed(error, None);
        self.fail(failed);
    }

    fn finish(&mut self) {
        if let State::Streaming(answer) = &mut self.state {
            answer.ends(None);
        }
        self.state = State::Over;
        self.ready.extend(self.usage.take().map(Event::Usage));
        let reason = self.reason.take().unwrap_or_else(|| "stop".to_owned());
        self.ready.push_back(Event::Finished { reason });
    }

    fn has_ended(&self) -> bool {
        matches!(
            self.ready.back(),
            Some(Event::Finished { .. } | Event::Failed(_))
        )
    }

    fn read(&mut self, bytes: &[u8]) {
        for line in self.lines.complete(bytes).split(|&byte| byte == b'\n') {
            if self.has_ended() {
                return;
            }
            self.line(line.trim_ascii());
        }
    }

    fn line(&mut self, line: &[u8]) {
        if line.starts_with(b":") {
            self.ready.push_back(Event::Progress(Stage::Prefill));
        }
        let Some(data) = line.strip_prefix(b"data:").map(<[u8]>::trim_ascii) else {
            return;
        };
        if data == b"[DONE]" {
            return self.finish();
        }
        let failed = match serde_json::from_slice::<Chunk>(data) {
            Ok(chunk) if chunk.error.is_none() => return self.chunk(chunk),
            Ok(_) => self.failed(wire::error(StatusCode::OK, data), None),
            // What is not an event of OpenAI's has nothing to say; one that cannot be read is a part that is missing.
            Err(error) if wire::has_choices(data) => self.failed(wire::unreadable(&error), None),
            Err(_) => return,
        };
        if let State::Streaming(answer) = &mut self.state {
            answer.ends(None);
        }
        self.fail(failed);
    }

    fn chunk(&mut self, chunk: Chunk) {
        self.ready.extend(chunk.tierbar.map(Event::Chain));
        // Of several answers the first.
        for choice in chunk.choices.into_iter().filter(|choice| choice.index == 0) {
            self.choice(choice);
        }
        if let Some(usage) = chunk.usage {
            let so_far = self.usage.get_or_insert_default();
            so_far.prompt_tokens = usage.prompt_tokens;
            so_far.cached_tokens = usage.cached();
            so_far.completion_tokens = usage.completion_tokens;
            so_far.reasoning_tokens = usage.reasoning();
        }
        if let Some(timings) = chunk.timings {
            let so_far = self.usage.get_or_insert_default();
            so_far.prefill_seconds = Some(timings.prompt_ms / 1000.0);
            so_far.decode_seconds = Some(timings.predicted_ms / 1000.0);
        }
    }

    fn choice(&mut self, mut choice: ChunkChoice) {
        let reasoning = choice.delta.thoughts();
        self.ready.extend(reasoning.map(Event::Reasoning));
        let text = choice.delta.content.or(choice.text);
        let text = text.filter(|text| !text.is_empty());
        self.ready.extend(text.map(Event::Text));
        for call in choice.delta.tool_calls.into_iter().flatten() {
            let Some(index) = self.calls.number(&call) else {
                continue;
            };
            self.ready.push_back(Event::ToolCall(ToolCallPart {
                index,
                id: call.id,
                name: call.function.name,
                arguments: call.function.arguments.unwrap_or_default(),
            }));
        }
        let logprobs = choice.logprobs.filter(|logprobs| !logprobs.is_null());
        self.ready.extend(logprobs.map(Event::LogProbs));
        self.reason = choice.finish_reason.or(self.reason.take());
    }
}

#[cfg(test)]
mod tests;

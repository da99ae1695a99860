//! The one way to an answer, beneath HTTP: a request goes in, events come out. Dropping the answer cancels it.

use super::{
    Inference,
    caller::Caller,
    dispatch::{self, AnswerStart, RequestRoute, RoutedRequest},
    events::Decoder,
    held::Share,
    original::Form,
    pieces, prompts,
    relay::{
        attempt::{ServerAnswer, WholeAnswer},
        gathered,
        streaming::{self, Beginning, WAITING_PERIOD},
        unstreamed,
    },
    request::Request,
    source::Source,
    stream_meter::StreamReading,
    wire,
};
use futures_util::{Stream, StreamExt, stream};
use http::StatusCode;
use serde_json::Value;
use std::{
    fmt,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll},
};
use tierbar_core::{Code, Error, json};
use tokio::time::timeout;

pub use super::{
    events::{AnswerFailure, CompleteAnswer, Event, Stage, ToolCall, ToolCallPart, Usage},
    wire::Sampling,
};

/// An answer as it arrives.
pub struct AnswerStream {
    source: Source,
    events: Pin<Box<dyn Stream<Item = Event> + Send>>,
}

impl fmt::Debug for AnswerStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerStream").finish_non_exhaustive()
    }
}

impl Stream for AnswerStream {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        self.events.poll_next_unpin(context)
    }
}

impl AnswerStream {
    /// Returns where the answer comes from, as far as that was known when it was returned. [`Event::Started`] has all of it.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Waits for the complete answer.
    ///
    /// # Errors
    /// If it breaks off, or takes too much memory.
    pub async fn gather(mut self) -> Result<CompleteAnswer, AnswerFailure> {
        let (mut whole, mut memory) = (CompleteAnswer::default(), 0);
        let (mut bytes, mut share) = (0, Share::default());
        while let Some(event) = self.next().await {
            bytes += event.bytes();
            if let Event::LogProbs(more) = &event {
                memory += json::memory_of(more);
                if memory > json::MOST_MEMORY {
                    let most = json::MOST_MEMORY >> 20;
                    let message = format!("the answer's probabilities take more than {most} MiB");
                    return Err(AnswerFailure {
                        source: whole.source,
                        ..Error::new(Code::Unreachable, message).into()
                    });
                }
            }
            if let Err(full) = share.cover(bytes + memory) {
                return Err(AnswerFailure {
                    source: whole.source,
                    ..full.into()
                });
            }
            if let Some(failed) = whole.add(event) {
                return Err(failed);
            }
        }
        Ok(whole)
    }
}

impl Inference {
    /// Asks for an answer. A request that streams has its answer at once if nothing plain, such as a missing file, keeps it from
    /// beginning; one that does not waits until its server has begun to answer.
    ///
    /// # Errors
    /// `ModelUnknown`, `ModelMissing` or `BadRequest` for a request that no tier can answer, and whatever else keeps the answer from
    /// beginning.
    pub async fn ask(
        self: &Arc<Self>,
        mut request: Request,
        caller: Caller,
    ) -> Result<AnswerStream, AnswerFailure> {
        let original = request.original.as_ref();
        let log = self.services.config().log;
        prompts::log(log, request.path, || match original {
            Some(original) => original.bytes(),
            None => request.content.bytes(),
        });
        request.reads = StreamReading::Chunks;
        let RoutedRequest {
            beginning,
            stream,
            way,
        } = dispatch::begin(self, request, caller).await?;
        let mut reading = AnswerReader {
            state: State::Over,
            way,
            stream,
            decoder: Decoder::default(),
            bytes: 0,
            share: Share::default(),
        };
        let source = match dispatch::first(beginning, stream).await {
            Err(error) => return Err(reading.failed(error, None)),
            Ok(AnswerStart::Later(beginning)) => {
                reading.state = State::Beginning(beginning);
                reading.who(reading.way.early.clone())
            }
            Ok(AnswerStart::Sent(ServerAnswer::Whole(refused))) if !refused.status.is_success() => {
                return Err(reading.refused(&refused));
            }
            Ok(AnswerStart::Sent(ServerAnswer::Streaming(mut answer))) if !stream => {
                let sent = match answer.meter.form {
                    Form::Chat => {
                        let held = answer.hold_to_first_word().await;
                        held.map_err(|failed| reading.failed(failed.error, None))?;
                        ServerAnswer::Streaming(answer)
                    }
                    Form::Messages | Form::Responses => {
                        let whole = gathered::gather(&mut answer).await;
                        ServerAnswer::Whole(whole.map_err(|error| reading.failed(error, None))?)
                    }
                };
                reading.begin(sent)
            }
            Ok(AnswerStart::Sent(sent)) => reading.begin(sent),
        };
        let events = stream::unfold(reading, |mut reading| async {
            let event = reading.next().await?;
            Some((event, reading))
        });
        Ok(AnswerStream {
            source,
            events: Box::pin(events),
        })
    }
}

enum State {
    Beginning(Beginning),
    Streaming(Box<streaming::StreamedAnswer>),
    Over,
}

/// An answer that is being turned into events.
struct AnswerReader {
    state: State,
    way: RequestRoute,
    /// The client reads the answer as a stream.
    stream: bool,
    decoder: Decoder,
    /// What has been read of a stream: some dialects have it again in their last event.
    bytes: usize,
    /// Of the memory for answers.
    share: Share,
}

impl AnswerReader {
    fn failed(&self, error: Error, status: Option<StatusCode>) -> AnswerFailure {
        AnswerFailure {
            status: status.map(|status| status.as_u16()),
            may_wait: self.way.may_wait(),
            source: self.way.source(),
            ..error.into()
        }
    }

    /// A worker's refusal is an error of ours, another server's has a status and a message of its own.
    fn refused(&self, refused: &WholeAnswer) -> AnswerFailure {
        let body: Value = json::read(&refused.body).unwrap_or_default();
        let ours = Error::from_openai_body(&body).is_some();
        let passes = refused.form != Form::Chat && body.is_object();
        AnswerFailure {
            source: self.who(Source::of_headers(&refused.headers)),
            body: passes.then(|| refused.body.clone()),
            ..self.failed(refused.error(), (!ours).then_some(refused.status))
        }
    }

    /// The tier and model that answer, and how the request came to them.
    fn who(&self, answers: Source) -> Source {
        Source {
            tier: answers.tier,
            model: answers.model,
            leased: answers.leased,
            ..self.way.source()
        }
    }

    /// Returns where the answer comes from.
    fn begin(&mut self, sent: ServerAnswer) -> Source {
        let source = self.who(match &sent {
            ServerAnswer::Streaming(answer) => Source {
                tier: Some(answer.lease().tier().clone()),
                model: Some(answer.lease().model().clone()),
                leased: Some(answer.leased()),
                ..Source::default()
            },
            ServerAnswer::Whole(whole) => Source::of_headers(&whole.headers),
        });
        let events = &mut self.decoder.events;
        events.push_back(Event::Started(source.clone()));
        match sent {
            ServerAnswer::Streaming(answer) => self.state = State::Streaming(answer),
            ServerAnswer::Whole(whole) => {
                let begun = self.begin_whole(whole);
                if let Err(error) = begun.and_then(|()| self.charge()) {
                    self.fail(error);
                }
            }
        }
        source
    }

    fn begin_whole(&mut self, whole: WholeAnswer) -> Result<(), Error> {
        let not_an_answer = |what: &str| Error::new(Code::Corrupt, what);
        let WholeAnswer {
            form,
            body,
            changes,
            ..
        } = whole;
        let passes = match form {
            Form::Messages | Form::Responses if !self.stream => pieces::edit(&body, &changes),
            // A stream was asked for.
            Form::Messages => unstreamed::as_message_events(body, changes).ok_or_else(|| {
                not_an_answer("the answer is not a message, or too long to be a stream")
            })?,
            Form::Responses => unstreamed::as_response_events(body, changes).ok_or_else(|| {
                not_an_answer("the answer is not a response, or too long to be a stream")
            })?,
            Form::Chat if wire::has_choices(&body) => {
                self.decoder.read_whole(body, changes)?;
                Vec::new()
            }
            Form::Chat => return Err(not_an_answer("the answer is not a completion")),
        };
        let passes = passes.into_iter().map(Event::Passed);
        self.decoder.events.extend(passes);
        Ok(())
    }

    /// Counts what has just been read. What does not stream is counted where it is gathered.
    fn charge(&mut self) -> Result<(), Error> {
        let events = &mut self.decoder.events;
        if self.stream {
            self.bytes += events.iter().map(Event::bytes).sum::<usize>();
        }
        let charged = self.share.cover(self.bytes);
        if charged.is_err() {
            events.retain(|event| event.bytes() == 0);
        }
        charged
    }

    fn fail(&mut self, error: Error) {
        let failed = self.failed(error, None);
        self.state = State::Over;
        self.decoder.events.push_back(Event::Failed(failed));
    }

    /// The next event; `None` after the last.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.decoder.events.pop_front() {
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
                    self.begun_late(sent);
                }
                State::Streaming(answer) if answer.meter.form != Form::Chat => {
                    return self.next_passing().await;
                }
                State::Streaming(answer) => match answer.next().await {
                    Ok(bytes) => {
                        let (length, lines) = (bytes.len(), answer.meter.take_lines());
                        drop(bytes);
                        let read = self.decoder.read(length, lines);
                        match read.and_then(|ended| self.charge().map(|()| ended)) {
                            Ok(false) => {}
                            Ok(true) => self.close(),
                            Err(error) => {
                                if let State::Streaming(answer) = &self.state {
                                    answer.meter.broke(error.code);
                                }
                                self.close();
                                self.fail(error);
                            }
                        }
                    }
                    Err(None) => {
                        self.close();
                        if let Err(error) = self.decoder.end() {
                            self.fail(error);
                        }
                    }
                    Err(Some(error)) => {
                        // Without a stream the error has a status, which is counted elsewhere.
                        if self.stream {
                            answer.meter.broke(error.code);
                        }
                        self.fail(error);
                    }
                },
            }
        }
    }

    /// The next bytes of an answer that passes as it came, or the error that it breaks off with.
    async fn next_passing(&mut self) -> Option<Event> {
        let State::Streaming(answer) = &mut self.state else {
            return None;
        };
        match answer.next().await {
            Ok(bytes) => Some(Event::Passed(bytes)),
            Err(Some(error)) => {
                answer.meter.broke(error.code);
                let end = answer.event_end();
                self.fail(error);
                match end.is_empty() {
                    true => self.decoder.events.pop_front(),
                    false => Some(Event::Passed(end.into())),
                }
            }
            Err(None) => {
                self.state = State::Over;
                None
            }
        }
    }

    fn begun_late(&mut self, sent: Result<ServerAnswer, Error>) {
        let State::Beginning(beginning) = std::mem::replace(&mut self.state, State::Over) else {
            return;
        };
        let failed = match sent {
            Ok(ServerAnswer::Whole(refused)) if !refused.status.is_success() => {
                self.refused(&refused)
            }
            Ok(sent) => {
                self.begin(sent);
                return;
            }
            Err(error) => self.failed(error, None),
        };
        beginning.failed(failed.error.code);
        self.decoder.events.push_back(Event::Failed(failed));
    }

    /// The server has said its last word: its connection and the lease end.
    fn close(&mut self) {
        if let State::Streaming(mut answer) = std::mem::replace(&mut self.state, State::Over) {
            answer.ends(None);
        }
    }
}

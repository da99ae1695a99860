//! The stream of an answer to its client, from before its first token to its end.

use super::{
    answered,
    attempt::{AttemptFailure, ServerAnswer, WholeAnswer, broken_connection_error, unless_cut},
    unstreamed,
};
use crate::response::{self, Body, Response};
use crate::{
    endpoints::Trial,
    error,
    held::Share,
    metrics::Metrics,
    stream_meter::StreamMeter,
    upstream::{ConnectionFailure, Upstream},
};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use serde_json::Value;
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tierbar_core::{
    Code, Error, TierId,
    chain::Outcome,
    lease::{BoxFuture, Lease},
};
use tokio::time::{timeout, timeout_at};

/// How often a silent stream sends a comment; clients and proxies give up on silence after about ten seconds.
pub(crate) const WAITING_PERIOD: Duration = Duration::from_secs(5);

/// How long the rest of the last event may take to arrive.
const LAST_BYTES: Duration = Duration::from_secs(1);

/// The most bytes that are held back while no known field has content; beyond, they pass on. Their values may take 60 times as much.
const MOST_HELD: usize = 256 << 10;

/// An answer that streams. The fields are dropped in order: first the connection closes, then the lease ends.
#[derive(Debug)]
pub struct StreamedAnswer {
    upstream: Upstream,
    pub(crate) meter: StreamMeter,
    /// What comes before the rest: what has arrived and was not to pass yet.
    held: Vec<u8>,
    /// The last bytes that have passed.
    tail: Vec<u8>,
    /// Where what comes of it counts for or against its endpoint.
    pub(crate) trial: Option<Trial>,
    /// What has come of it is noted.
    has_settled: bool,
    /// When it is closed, once its last event has begun to arrive.
    closes: Option<tokio::time::Instant>,
    leased: Instant,
    lease: Box<dyn Lease>,
}

impl StreamedAnswer {
    /// `leased`: when the lease was granted.
    pub(super) fn new(
        upstream: Upstream,
        meter: StreamMeter,
        leased: Instant,
        lease: Box<dyn Lease>,
    ) -> Self {
        Self {
            upstream,
            meter,
            held: Vec::new(),
            tail: Vec::new(),
            trial: None,
            has_settled: false,
            closes: None,
            leased,
            lease,
        }
    }

    pub fn lease(&self) -> &dyn Lease {
        &*self.lease
    }

    pub fn leased(&self) -> Instant {
        self.leased
    }

    /// It ends after its first token: as its server reports, or else as it broke off. What comes behind its end changes nothing.
    pub fn ends(&mut self, broken: Option<&Error>) {
        if std::mem::replace(&mut self.has_settled, true) {
            return;
        }
        let failure = self.meter.failure();
        let code = failure.as_ref().or(broken).map(|error| error.code);
        self.meter.settle(code);
        let outcome = match (failure, broken) {
            (Some(error), _) => answered::failure(error).outcome,
            (None, Some(error)) => AttemptFailure::from(error.clone()).outcome,
            (None, None) => Outcome::Answered,
        };
        if let Some(trial) = &mut self.trial {
            trial.settle(outcome);
        }
    }

    /// Has an event in OpenAI's form come before what is held.
    pub(crate) fn begin_with(&mut self, event: &Value) {
        self.meter.begin_with(event);
        let mut bytes = format!("data: {event}\n\n").into_bytes();
        bytes.append(&mut self.held);
        self.held = bytes;
    }

    /// Changes what is held.
    pub(crate) fn change_held(&mut self, change: impl FnOnce(&[u8]) -> Option<Vec<u8>>) {
        if let Some(changed) = change(&self.held) {
            self.held = changed;
        }
    }

    /// Holds back what arrives until there is content, or the end.
    pub(crate) async fn hold_to_first_word(&mut self) -> Result<(), AttemptFailure> {
        let held = self.hold().await;
        if let Err(failed) = &held {
            self.meter.settle(Some(failed.error.code));
        }
        held
    }

    async fn hold(&mut self) -> Result<(), AttemptFailure> {
        let silent = |meter: &StreamMeter| !meter.spoken && !meter.ended;
        while silent(&self.meter) && self.held.len() <= MOST_HELD {
            match self.arriving(false).await {
                Ok(bytes) => self.held.extend_from_slice(&bytes),
                Err(Some(error)) => return Err(error.into()),
                Err(None) => break,
            }
        }
        if let Some(error) = self.meter.failure().filter(|_| !self.meter.spoken) {
            return Err(answered::failure(error));
        }
        if self.meter.ended && !self.meter.has_answered() {
            return Err(answered::no_answer(
                self.lease.tier(),
                "events without an answer",
            ));
        }
        Ok(())
    }

    /// The next bytes that may pass, up to the last event. At the end `Err`, with the error if the worker has not sent one.
    pub async fn next(&mut self) -> Result<Bytes, Option<Error>> {
        let passing = if !self.held.is_empty() {
            let held = std::mem::take(&mut self.held);
            Share::moved(held.len()).hold(held.into())
        } else if let Some(closes) = self.closes {
            // Some servers keep the connection open behind the last event, and ping.
            if self.is_between_events() {
                return Err(None);
            }
            let rest = match tokio::time::Instant::now() < closes {
                true => timeout_at(closes, self.arriving(false)).await.ok(),
                false => None,
            };
            // Its client waits for the line that ends an event.
            let rest = rest.and_then(Result::ok);
            rest.unwrap_or_else(|| self.event_end().into())
        } else {
            match self.arriving(true).await {
                Ok(passing) => passing,
                Err(end) => {
                    self.ends(end.as_ref());
                    return Err(end);
                }
            }
        };
        if self.closes.is_none() && self.meter.ended {
            // Its client may leave without waiting for more.
            self.ends(None);
            self.closes = Some(tokio::time::Instant::now() + LAST_BYTES);
        }
        let last = passing.len().saturating_sub(4);
        self.tail.extend_from_slice(&passing[last..]);
        let before = self.tail.len().saturating_sub(4);
        self.tail.drain(..before);
        Ok(passing)
    }

    /// A comment breaks nothing here.
    pub(crate) fn is_between_events(&self) -> bool {
        let tail = self.tail.as_slice();
        tail.is_empty() || tail.ends_with(b"\n\n") || tail.ends_with(b"\n\r\n")
    }

    /// A comment for a client that waits, within no event. Some servers send the empty line that ends an event with the next one.
    fn comment(&mut self) -> Option<Bytes> {
        if self.meter.is_read() || self.is_between_events() {
            return Some(waiting("waiting"));
        }
        let end = self.event_end();
        let ends = self.meter.close_event();
        ends.then(|| format!("{end}: waiting\n\n").into())
    }

    /// What ends an event of which only a part has passed.
    pub(crate) fn event_end(&self) -> &'static str {
        match self.tail.last() {
            _ if self.is_between_events() => "",
            // Some clients fail at a named event without data.
            Some(b'\n') if self.meter.named => "event:\n\n",
            Some(b'\n') => "\n",
            // Half a line would go on in the next event.
            _ => "\n\n",
        }
    }

    /// What arrives next. With `pings`, a comment after a silence.
    async fn arriving(&mut self, pings: bool) -> Result<Bytes, Option<Error>> {
        loop {
            if let Some(error) = self.meter.take_broken() {
                return Err(Some(error));
            }
            let arriving = unless_cut(&*self.lease, self.upstream.next());
            let Ok(arrived) = timeout(WAITING_PERIOD, arriving).await else {
                if let Some(comment) = pings.then(|| self.comment()).flatten() {
                    self.meter.waits();
                    return Ok(comment);
                }
                continue;
            };
            match arrived? {
                Ok(Some(arrived)) => {
                    let passing = self.meter.pass(arrived);
                    if !passing.is_empty() {
                        return Ok(passing);
                    }
                }
                _ if self.meter.ended => return Err(None),
                Ok(None) => {
                    if let Some(last) = self.meter.take_rest().or_else(|| self.meter.end()) {
                        return Ok(last);
                    }
                    if self.meter.may_have_ended() {
                        return Err(None);
                    }
                    let broken = ConnectionFailure::early();
                    return Err(Some(broken_connection_error(&*self.lease, &broken).await));
                }
                Err(broken) => {
                    let error = broken_connection_error(&*self.lease, &broken).await;
                    return self.meter.break_off(error).map_err(Some);
                }
            }
        }
    }
}

/// An answer that has not begun. Dropping it leaves the wait for its tier or closes the connection.
pub struct Beginning {
    pub sent: BoxFuture<'static, Result<ServerAnswer, Error>>,
    /// Its tier is loaded: it waits for its first token.
    pub loaded: Arc<AtomicBool>,
    pub metrics: Metrics,
    /// The tier or chain.
    pub of: TierId,
}

impl Beginning {
    /// Counts a failure in a stream that has begun.
    pub fn failed(&self, code: Code) {
        self.metrics.broke(self.of.as_str(), code);
    }
}

impl fmt::Debug for Beginning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Beginning").finish_non_exhaustive()
    }
}

/// A stream of events to the client, step by step.
#[derive(Debug)]
pub enum Relay {
    Beginning(Beginning),
    Streaming(Box<StreamedAnswer>),
    Over,
}

impl Relay {
    /// The next bytes; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        let failure = loop {
            match self {
                Self::Beginning(beginning) => {
                    let Ok(sent) = timeout(WAITING_PERIOD, &mut beginning.sent).await else {
                        let loaded = beginning.loaded.load(Ordering::Relaxed);
                        let word = if loaded { "waiting" } else { "loading" };
                        return Some(waiting(word));
                    };
                    let Self::Beginning(beginning) = std::mem::replace(self, Self::Over) else {
                        return None;
                    };
                    let error = match sent {
                        Ok(ServerAnswer::Streaming(answer)) => {
                            *self = Self::Streaming(answer);
                            continue;
                        }
                        Ok(ServerAnswer::Whole(whole)) if whole.status.is_success() => {
                            return Some(unstreamed::as_events(whole.body, whole.changes));
                        }
                        Ok(ServerAnswer::Whole(refused)) => refused.error(),
                        Err(error) => error,
                    };
                    beginning.failed(error.code);
                    break error;
                }
                Self::Streaming(answer) => match answer.next().await {
                    Ok(passing) => return Some(passing),
                    Err(None) => return None,
                    Err(Some(error)) => {
                        answer.meter.broke(error.code);
                        break error;
                    }
                },
                Self::Over => return None,
            }
        };
        let end = match self {
            Self::Streaming(answer) if !answer.is_between_events() => answer.event_end(),
            _ => "\n",
        };
        *self = Self::Over;
        Some(format!("{end}{}", error::last_event(&failure)).into())
    }
}

fn waiting(word: &str) -> Bytes {
    format!(": {word}\n\n").into()
}

pub fn events(headers: HeaderMap, relay: Relay) -> Response {
    let passing = stream::unfold(relay, |mut relay| async {
        let bytes = relay.next().await?;
        Some((Ok(Frame::data(bytes)), relay))
    });
    streaming(headers, StreamBody::new(passing).boxed_unsync())
}

/// An answer that came whole to a client that asked for a stream.
pub(crate) fn as_stream(whole: WholeAnswer) -> Response {
    let events = unstreamed::as_events(whole.body, whole.changes);
    streaming(whole.headers, response::whole(events))
}

fn streaming(mut headers: HeaderMap, body: Body) -> Response {
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response::new(StatusCode::OK, headers, body)
}

//! A completion, relayed: find the tier, hold a lease on it for as long as the answer streams, pass the bytes on.
//!
//! Nothing here is a task of its own. When the client goes away the server drops the handler or the body, and with
//! it the place in the queue, or the worker's connection and the lease. Prompts and answers are never logged.

use super::{route, tap, tap::Tap};
use crate::{
    Gateway, blocking::blocking, body, error, error::Failure, upstream::Broken, upstream::Upstream,
};
use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_util::stream;
use secrecy::SecretString;
use serde::Deserialize;
use std::{
    convert::Infallible,
    sync::Arc,
    time::{Duration, Instant},
};
use tierbar_core::{
    Code, Error, ModelId, TierId,
    lease::{Address, BoxFuture, Endpoint, Foreign, KeepAlive, Lease},
};
use tierbar_secrets::Name;
use tokio::time::timeout;

/// A load that fails for a plain reason, such as a missing file, does so within this time and gets a status of its
/// own. After it, a stream begins while the tier still loads.
const FAST_FAILURE: Duration = Duration::from_secs(2);
/// How often a stream says that its tier still loads; clients and proxies give up on silence after some ten seconds.
const LOADING_PERIOD: Duration = Duration::from_secs(5);
/// How long a worker's owner may take to say why the worker has ended. The process is dead or about to be killed.
const REASON_DEADLINE: Duration = Duration::from_secs(3);
/// The longest answer that a context can hold is a fraction of it.
const ANSWER_LIMIT: usize = 64 << 20;

pub(crate) static TIER: HeaderName = HeaderName::from_static("x-tierbar-tier");
static MODEL: HeaderName = HeaderName::from_static("x-tierbar-model");
static STEPPED_DOWN: HeaderName = HeaderName::from_static("x-tierbar-stepped-down-from");

/// The fields that decide where a request goes; the worker reads the rest.
#[derive(Debug, Deserialize)]
struct Wanted {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    keep_alive: Option<KeepAlive>,
}

/// A request that has been read, on its way to a tier that has been found.
pub(crate) struct Job {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) tier: TierId,
    /// The tier that it names, if another stands in for that.
    pub(crate) stands_in_for: Option<TierId>,
    pub(crate) path: &'static str,
    pub(crate) body: Vec<u8>,
    /// The answer is to come as events.
    pub(crate) stream: bool,
    pub(crate) keep_alive: Option<KeepAlive>,
    pub(crate) arrived: Instant,
}

type Leasing = BoxFuture<'static, Result<Box<dyn Lease>, Error>>;

pub(crate) async fn relay(
    gateway: Arc<Gateway>,
    path: &'static str,
    body: Body,
) -> Result<Response, Failure> {
    let arrived = Instant::now();
    let body = body::read(body, body::INFERENCE_LIMIT).await?;
    let wanted: Wanted = body::parse(&body)?;
    let tiers = gateway.tiers.snapshot();
    let asked = route::resolve(wanted.model.as_deref(), &tiers)?;
    // Vectors of another model mean nothing beside each other, and a context is kept where it lies.
    let speaks = path == super::CHAT || path == super::TEXT;
    route::check_engine(&asked, &tiers, path)?;
    let smaller = route::smaller(&asked, wanted.model.as_deref(), &tiers, &body);
    let smaller = smaller.filter(|_| speaks);
    let job = Job {
        gateway,
        stands_in_for: smaller.is_some().then(|| asked.clone()),
        tier: smaller.unwrap_or(asked),
        path,
        body,
        stream: wanted.stream == Some(true),
        keep_alive: wanted.keep_alive,
        arrived,
    };
    job.relay().await
}

impl Job {
    pub(crate) async fn relay(self) -> Result<Response, Failure> {
        let asked = self.stands_in_for.clone();
        let mut response = self.answer().await?;
        if let Some(asked) = asked
            && let Ok(asked) = HeaderValue::from_str(asked.as_str())
        {
            response.headers_mut().insert(STEPPED_DOWN.clone(), asked);
        }
        Ok(response)
    }

    async fn answer(self) -> Result<Response, Failure> {
        let mut leasing: Leasing = {
            let (gateway, tier) = (Arc::clone(&self.gateway), self.tier.clone());
            let waiting = gateway.metrics.waiting(&tier);
            Box::pin(async move {
                let _waiting = waiting;
                gateway.tiers.lease(&tier).await
            })
        };
        let lease = match timeout(FAST_FAILURE, &mut leasing).await {
            Ok(lease) => lease?,
            Err(_) if self.stream => {
                let mut tiers = self.gateway.tiers.snapshot().into_iter();
                let tier = self.tier.clone();
                let model = tiers
                    .find(|status| status.id == tier)
                    .and_then(|status| status.model);
                let loading = Relay::Loading { leasing, job: self };
                return Ok(events(&tier, model.as_ref(), loading));
            }
            Err(_) => leasing.await?,
        };

        let answer = match self.send(lease).await? {
            Sent::Streaming(answer) => answer,
            Sent::Whole(answer) => return Ok(answer.into_response()),
        };
        let (tier, model) = (answer.lease.tier().clone(), answer.lease.model().clone());
        Ok(events(&tier, Some(&model), Relay::Streaming(answer)))
    }
}

/// How the worker answers.
enum Sent {
    Streaming(Box<Answer>),
    Whole(Whole),
}

struct Whole {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl IntoResponse for Whole {
    fn into_response(self) -> Response {
        (self.status, self.headers, body::whole(self.body)).into_response()
    }
}

impl Job {
    async fn send(self, lease: Box<dyn Lease>) -> Result<Sent, Error> {
        if let Some(keep) = self.keep_alive {
            lease.keep(keep);
        }
        let answering = self.gateway.speed.begin(lease.model());
        let mut counted = self.gateway.metrics.answer(lease.tier(), self.arrived);
        let key = key(&self.gateway, &*lease).await?;
        let (remote, key) = (&self.gateway.remote, key.as_ref());
        let posted = Upstream::post(lease.endpoint(), self.path, self.body, remote, key);
        let mut upstream = match unless_cut(&*lease, posted).await? {
            Ok(upstream) => upstream,
            Err(broken) => return Err(reason(&*lease, &broken).await),
        };
        if upstream.head.status == StatusCode::OK && upstream.is_event_stream() {
            counted.begins();
            return Ok(Sent::Streaming(Box::new(Answer {
                upstream: upstream.without_head(),
                tap: Tap::new(answering, counted),
                lease,
            })));
        }
        let body = match unless_cut(&*lease, upstream.whole(ANSWER_LIMIT)).await? {
            Ok(body) => body,
            Err(broken) => return Err(reason(&*lease, &broken).await),
        };
        if upstream.head.status.is_success() {
            counted.begins();
        }
        tap::whole(&answering, &mut counted, &body);
        if is_remote(&*lease)
            && matches!(
                upstream.head.status,
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN
            )
        {
            return Err(no_key(&*lease, upstream.head.status));
        }
        if upstream.head.status.is_server_error() && !upstream.is_json() {
            return Err(unexplained(&*lease, upstream.head.status));
        }
        let mut headers = who_answers(lease.tier(), Some(lease.model()));
        if let Some(kind) = upstream.head.headers.remove(header::CONTENT_TYPE) {
            headers.insert(header::CONTENT_TYPE, kind);
        }
        Ok(Sent::Whole(Whole {
            status: upstream.head.status,
            headers,
            body,
        }))
    }
}

fn url(lease: &dyn Lease) -> Option<&str> {
    match lease.endpoint() {
        Endpoint::Foreign(Foreign {
            at: Address::Url(url),
            ..
        }) => Some(url),
        _ => None,
    }
}

fn is_remote(lease: &dyn Lease) -> bool {
    url(lease).is_some()
}

/// What the server does, unless the lease on an endpoint ends first, with the reason why. A worker that ends breaks the
/// connection itself.
async fn unless_cut<T>(lease: &dyn Lease, done: impl Future<Output = T>) -> Result<T, Error> {
    if !is_remote(lease) {
        return Ok(done.await);
    }
    tokio::select! {
        biased;
        ended = lease.ended() => Err(ended),
        done = done => Ok(done),
    }
}

/// The key of the lease's endpoint, if it has one.
async fn key(gateway: &Gateway, lease: &dyn Lease) -> Result<Option<SecretString>, Error> {
    let Some(url) = url(lease) else {
        return Ok(None);
    };
    let name = Name::of_server(url);
    let secrets = gateway.secrets.clone();
    blocking("the endpoint's key", move || secrets.get(&name)).await
}

/// A client that heard of it by that status would take it for our own token's.
fn no_key(lease: &dyn Lease, status: StatusCode) -> Error {
    let url = url(lease).unwrap_or_default();
    let message = format!(
        "the endpoint of {}, {url}, wants another key ({status})",
        lease.tier()
    );
    let name = Name::of_server(url);
    Error::new(Code::Unreachable, message).hint(format!("run: tierbar secret set {name}"))
}

/// A proxy's page, or nothing at all: no client of ours could read it.
fn unexplained(lease: &dyn Lease, status: StatusCode) -> Error {
    let message = format!(
        "the server of {} answered {status} and not why",
        lease.tier()
    );
    Error::new(Code::Unreachable, message).hint("see its own log, then try again")
}

/// Why the worker's connection broke, in the words of the worker's owner.
async fn reason(lease: &dyn Lease, broken: &Broken) -> Error {
    if let Some(url) = url(lease) {
        let message = format!("the endpoint of {}, {url}, {broken}", lease.tier());
        return Error::new(Code::Unreachable, message)
            .hint("see that the server runs and that its address is right, then try again");
    }
    match timeout(REASON_DEADLINE, lease.ended()).await {
        Ok(ended) => ended,
        Err(_) => {
            let message = format!(
                "the {} tier's worker broke off its answer: {broken}",
                lease.tier()
            );
            Error::new(Code::WorkerCrashed, message)
                .hint("try again; if it happens again, stop and start the tier")
        }
    }
}

/// An answer that streams. The fields are dropped in order: first the connection closes, then the lease ends.
struct Answer {
    upstream: Upstream,
    tap: Tap,
    lease: Box<dyn Lease>,
}

impl Answer {
    /// The next bytes that may pass, or the end and the event that tells it if the worker has not.
    async fn next(&mut self) -> Result<Bytes, Option<Error>> {
        loop {
            match unless_cut(&*self.lease, self.upstream.next()).await? {
                Ok(Some(arrived)) => {
                    let passing = self.tap.pass(arrived);
                    if !passing.is_empty() {
                        return Ok(passing);
                    }
                }
                _ if self.tap.has_ended() => return Err(None),
                Ok(None) => {
                    let broken = Broken::early();
                    return Err(Some(reason(&*self.lease, &broken).await));
                }
                Err(broken) => return Err(Some(reason(&*self.lease, &broken).await)),
            }
        }
    }
}

/// A stream of events to the client, step by step.
enum Relay {
    Loading { leasing: Leasing, job: Job },
    Streaming(Box<Answer>),
    Over,
}

impl Relay {
    /// The next bytes; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        let failure = loop {
            match self {
                Self::Loading { leasing, .. } => {
                    let Ok(leased) = timeout(LOADING_PERIOD, leasing).await else {
                        return Some(Bytes::from_static(b": loading\n\n"));
                    };
                    let Self::Loading { job, .. } = std::mem::replace(self, Self::Over) else {
                        return None;
                    };
                    let (metrics, tier) = (job.gateway.metrics.clone(), job.tier.clone());
                    let sent = match leased {
                        // Apart, or every stream would be as large as this.
                        Ok(lease) => Box::pin(job.send(lease)).await,
                        Err(error) => Err(error),
                    };
                    match sent {
                        Ok(Sent::Streaming(answer)) => *self = Self::Streaming(answer),
                        Ok(Sent::Whole(refused)) => return Some(as_event(&refused.body)),
                        Err(error) => {
                            metrics.broke(tier.as_str(), error.code);
                            break error;
                        }
                    }
                }
                Self::Streaming(answer) => match answer.next().await {
                    Ok(passing) => return Some(passing),
                    Err(None) => return None,
                    Err(Some(error)) => {
                        answer.tap.broke(error.code);
                        break error;
                    }
                },
                Self::Over => return None,
            }
        };
        *self = Self::Over;
        // The empty line ends an event of which only a part has passed.
        Some(format!("\n{}", error::last_event(&failure)).into())
    }
}

/// A worker's refusal, told in a stream that has begun.
fn as_event(refusal: &[u8]) -> Bytes {
    let one_line: Vec<u8> = refusal
        .iter()
        .copied()
        .filter(|&byte| byte != b'\n' && byte != b'\r')
        .collect();
    [b"data: ", one_line.as_slice(), b"\n\n"].concat().into()
}

fn events(tier: &TierId, model: Option<&ModelId>, relay: Relay) -> Response {
    let mut headers = who_answers(tier, model);
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    let passing = stream::unfold(relay, |mut relay| async {
        let bytes = relay.next().await?;
        Some((Ok::<_, Infallible>(bytes), relay))
    });
    (headers, Body::from_stream(passing)).into_response()
}

fn who_answers(tier: &TierId, model: Option<&ModelId>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let mut add = |name: &HeaderName, value: &str| {
        // A model is named after its file, and a file's name may hold what a header cannot.
        if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
            headers.insert(name.clone(), value);
        }
    };
    add(&TIER, tier.as_str());
    if let Some(model) = model {
        add(&MODEL, model.as_str());
    }
    headers
}

#[cfg(test)]
mod tests;

//! One attempt at one tier: its lease, the call of its worker, and how the answer begins.

use super::{answered, brief::is_brief, streaming::StreamedAnswer, who_answers};
use crate::response::{self, Response};
use crate::{
    CHAT, Inference, TEXT, TOKENS, auto, chat_calls,
    chat_text::TextRules,
    clouds::anthropic,
    error::for_seconds,
    fields, limits, media,
    original::Form,
    pieces,
    request::Request,
    send,
    stream_meter::{self, StreamMeter, StreamReading},
    upstream::{ANSWER_LIMIT, ConnectionFailure, Upstream, is_content_type},
    vector_encoding::VectorForm,
    wire,
};
use bytes::Bytes;
use http::{HeaderMap, StatusCode, header, response::Parts};
use secrecy::SecretString;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tierbar_core::{
    Code, Error, TierId,
    chain::Outcome,
    json_edit::Change,
    lease::{Address, Endpoint, Foreign, Lease, Purpose},
    queue::{Setback, setback},
};
use tierbar_fetch::blocking;
use tierbar_secrets::Name;
use tokio::time::timeout;

/// The timeout for a lease's reason once its worker has ended. The process is dead or about to be killed.
const REASON_DEADLINE: Duration = Duration::from_secs(3);

/// How a server answers.
#[derive(Debug)]
pub enum ServerAnswer {
    Streaming(Box<StreamedAnswer>),
    Whole(WholeAnswer),
}

#[derive(Debug)]
pub struct WholeAnswer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// The form of the body.
    pub form: Form,
    pub body: Bytes,
    /// What is changed in the body on its way to the client.
    pub changes: Vec<Change>,
    /// What the answer means for the endpoint's availability.
    pub outcome: Outcome,
}

impl WholeAnswer {
    /// The error of a refusal.
    pub fn error(&self) -> Error {
        with_retry_time(refusal(self.form, self.status, &self.body), self.outcome)
    }
}

fn refusal(form: Form, status: StatusCode, body: &[u8]) -> Error {
    match form {
        Form::Messages => {
            let body = anthropic::openai_failure(body).to_string();
            wire::error(status, body.as_bytes())
        }
        Form::Chat | Form::Responses => wire::error(status, body),
    }
}

impl From<WholeAnswer> for Response {
    fn from(whole: WholeAnswer) -> Self {
        let pieces = pieces::edit(&whole.body, &whole.changes);
        response::new(whole.status, whole.headers, response::pieces(pieces))
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub struct AttemptFailure {
    pub error: Error,
    pub outcome: Outcome,
}

impl From<Error> for AttemptFailure {
    fn from(error: Error) -> Self {
        // A pause of ours is not the server's fault, and neither is a lack of room.
        let outcome = match setback(error.code) {
            Setback::NotTried => Outcome::NotAsked,
            // An endpoint's tier is the user's to stop.
            _ if matches!(
                error.code,
                Code::TierStopped | Code::TierUnknown | Code::Overloaded
            ) =>
            {
                Outcome::NotAsked
            }
            _ => Outcome::Failed,
        };
        Self { error, outcome }
    }
}

/// # Errors
/// Those of a lease, of [`fields::check`] and of [`media::check`]; why the request cannot be translated, if the tier is no endpoint.
pub async fn lease(
    inference: &Arc<Inference>,
    tier: &TierId,
    request: &Request,
) -> Result<Box<dyn Lease>, Error> {
    let content = &request.content;
    let original = request.original.as_ref();
    if let Some(error) = original.and_then(|original| original.untranslatable.as_ref())
        && inference.endpoint_of(tier).is_none()
    {
        return Err(error.clone());
    }
    fields::check(inference, tier, request)?;
    media::check(inference, tier, content).await?;
    let lease = {
        let _waiting = inference.metrics.waiting(tier);
        auto::lease(inference, tier, purpose(inference, tier, request)).await?
    };
    // Only now is it known whether there was room for its projector.
    media::check(inference, tier, content).await?;
    Ok(lease)
}

fn purpose(inference: &Inference, tier: &TierId, request: &Request) -> Purpose {
    let mut tiers = inference.tiers.snapshot().into_iter();
    let model = tiers.find(|status| status.id == *tier);
    let model = model.and_then(|status| status.model);
    let usual = model.and_then(|model| inference.speed.usual(&model));
    match request.purpose {
        Purpose::Answer if is_brief(request.path, &request.content, usual) => Purpose::Brief,
        purpose => purpose,
    }
}

/// # Errors
/// If no answer came. A refusal is an answer, except one of the API key, which only the owner can change.
pub async fn send(
    inference: &Inference,
    request: Request,
    lease: Box<dyn Lease>,
) -> Result<ServerAnswer, AttemptFailure> {
    if let Some(keep) = request.keep_alive {
        lease.keep(keep);
    }
    let mut answering = inference.speed.begin(lease.model());
    if is_remote(&*lease) {
        answering = answering.uncounted();
    }
    let mut counted = inference
        .metrics
        .answer(lease.tier(), request.arrived)
        .traced(request.trace.clone());
    let leased = Instant::now();
    request.trace.leased(lease.tier(), lease.model());
    let engine = inference.endpoint_of(lease.tier());
    let prices = engine.and_then(|engine| engine.prices());
    request.trace.begins(is_remote(&*lease), prices);
    let key = key(inference, &*lease).await?;
    let mut charge = request.charge.attempt();
    let (path, stream, reads) = (request.path, request.stream, request.reads);
    let vectors = VectorForm::of_request(path, request.content.fields());
    let text = text_rules(&*lease, &request);
    let posted = post(inference, request, lease.endpoint(), key.as_ref());
    let (mut upstream, form) = match unless_cut(&*lease, posted).await? {
        Ok(posted) => posted,
        Err(broken) => {
            charge.void();
            return Err(broken_connection_error(&*lease, &broken).await.into());
        }
    };
    let status = upstream.head.status;
    if status == StatusCode::OK && is_content_type(&upstream.head.headers, "text/event-stream") {
        counted.begins();
        return Ok(ServerAnswer::Streaming(Box::new(StreamedAnswer::new(
            upstream.without_head(),
            StreamMeter::new(answering, counted, charge)
                .reading(form, reads_of(form, reads, stream))
                .dividing(text.and_then(TextRules::for_stream)),
            leased,
            lease,
        ))));
    }
    // Counting tokens costs nothing.
    if !status.is_success() || path == TOKENS {
        charge.void();
    }
    let outcome = match upstream.is_ours {
        true => Outcome::NotAsked,
        false => limits::outcome(status, &upstream.head.headers),
    };
    let body = match unless_cut(&*lease, upstream.whole(ANSWER_LIMIT)).await? {
        Ok(body) if matches!(lease.endpoint(), Endpoint::Unix(_)) => body,
        Ok(body) => repaired(path, vectors, text.filter(|_| form == Form::Chat), body),
        Err(broken) => return Err(broken_connection_error(&*lease, &broken).await.into()),
    };
    let mut context = None;
    if status.is_success() {
        if !matches!(lease.endpoint(), Endpoint::Unix(_))
            && let Some(fault) = answered::fault(lease.tier(), path, form, &upstream.head, &body)
        {
            charge.void();
            return Err(fault);
        }
        counted.begins();
        context = stream_meter::whole(form, &answering, &mut counted, charge, &body);
        // Its server has worked for it, and is paid.
        if let Some(error) = vectors.and_then(|form| form.fault(lease.tier(), &body)) {
            counted.settle(Some(error.code));
            let outcome = Outcome::Unfit;
            return Err(AttemptFailure { error, outcome });
        }
        counted.settle(None);
    } else {
        counted.settle(Some(refusal(form, status, &body).code));
    }
    if let Some(error) = unusable_refusal(&*lease, &upstream.head, &body, outcome) {
        return Err(AttemptFailure { error, outcome });
    }
    let mut headers = who_answers(&*lease, context);
    if let Some(kind) = upstream.head.headers.remove(header::CONTENT_TYPE) {
        headers.insert(header::CONTENT_TYPE, kind);
    }
    if let Some(seconds) = outcome.asks_for() {
        headers.insert(header::RETRY_AFTER, seconds.into());
    }
    Ok(ServerAnswer::Whole(WholeAnswer {
        status,
        headers,
        form,
        body,
        changes: Vec::new(),
        outcome,
    }))
}

/// The error in place of a refusal of the API key, which only the owner can change, or of one that is no API's.
fn unusable_refusal(
    lease: &dyn Lease,
    head: &Parts,
    body: &[u8],
    outcome: Outcome,
) -> Option<Error> {
    match head.status {
        StatusCode::UNAUTHORIZED if is_remote(lease) => Some(no_key(lease)),
        StatusCode::FORBIDDEN if is_remote(lease) => Some(forbidden_error(lease, body)),
        status
            if status.is_server_error() && !is_content_type(&head.headers, "application/json") =>
        {
            Some(with_retry_time(status_error(lease, status), outcome))
        }
        _ => None,
    }
}

/// Another program's answer as clients read it.
fn repaired(
    path: &str,
    vectors: Option<VectorForm>,
    text: Option<TextRules>,
    body: Bytes,
) -> Bytes {
    match (path, text) {
        (CHAT, Some(rules)) => rules.divide_whole(chat_calls::repair_whole(body)),
        (CHAT | TEXT, _) => chat_calls::repair_whole(body),
        _ => match vectors {
            Some(form) => form.encode(body),
            None => body,
        },
    }
}

/// How the text of a chat is read; `None` for our own worker's, which has done it.
fn text_rules(lease: &dyn Lease, request: &Request) -> Option<TextRules> {
    let is_foreign = matches!(lease.endpoint(), Endpoint::Foreign(_));
    (is_foreign && request.path == CHAT).then(|| TextRules::of_request(request.content.fields()))
}

/// What is to be made of a stream's events: all of what streams to a client that asked for no stream.
fn reads_of(form: Form, reads: StreamReading, stream: bool) -> StreamReading {
    match (form, reads) {
        (_, StreamReading::Values) => StreamReading::Values,
        (Form::Chat, StreamReading::Chunks) => StreamReading::Chunks,
        _ if !stream => StreamReading::Values,
        _ => StreamReading::Nothing,
    }
}

/// Posts the request, in its client's form to a server that speaks it, and else as a chat. Returns the answer with its form.
async fn post(
    inference: &Inference,
    request: Request,
    endpoint: &Endpoint,
    key: Option<&SecretString>,
) -> Result<(Upstream, Form), ConnectionFailure> {
    let remote = &inference.remote;
    let mut lacks_responses = None;
    if let Some(original) = &request.original {
        if let Endpoint::Foreign(Foreign {
            at: Address::Url(url),
            model,
            ..
        }) = endpoint
            && original.passes_to(endpoint)
            && (original.untranslatable.is_some() || !inference.endpoints.lacks(url, original.path))
        {
            let model = model.as_deref();
            let mut upstream =
                send::send_original(url, model, original, &request.hints.dialect, remote, key)
                    .await?;
            let may_ask_for_chat =
                original.form == Form::Responses && original.untranslatable.is_none();
            let is_unknown = match upstream.head.status {
                StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED => true,
                // What the request names may be what is not found.
                StatusCode::NOT_FOUND if may_ask_for_chat => {
                    wire::is_of_unknown_path(&upstream.peek(ANSWER_LIMIT).await?)
                }
                _ => false,
            };
            if !(may_ask_for_chat && is_unknown) {
                return Ok((upstream, original.form));
            }
            lacks_responses = Some((url, original.path));
        } else if let Some(error) = &original.untranslatable {
            return Ok((Upstream::refusing(error), Form::Chat));
        }
    }
    let without_files = match &request.original {
        Some(original) if request.omits_files() => {
            let takes_files = send::takes_files(endpoint);
            original.files_sent.set(takes_files);
            (!takes_files)
                .then(|| request.content.without_files())
                .flatten()
        }
        _ => None,
    };
    let content = without_files.unwrap_or(request.content);
    let (path, headers) = (request.path, &request.hints.dialect);
    let upstream = send::send(endpoint, path, content, headers, remote, key).await?;
    if let Some((url, path)) = lacks_responses
        && upstream.head.status.is_success()
    {
        inference.endpoints.note_lack(url, path);
    }
    Ok((upstream, Form::Chat))
}

/// Asks, and waits for the first token. A refusal is an error here, too.
pub(crate) async fn first_word(
    inference: &Arc<Inference>,
    tier: &TierId,
    request: Request,
) -> Result<ServerAnswer, AttemptFailure> {
    let lease = lease(inference, tier, &request).await?;
    match send(inference, request, lease).await? {
        ServerAnswer::Streaming(mut answer) => {
            answer.hold_to_first_word().await?;
            Ok(ServerAnswer::Streaming(answer))
        }
        ServerAnswer::Whole(whole) if whole.status.is_success() => Ok(ServerAnswer::Whole(whole)),
        ServerAnswer::Whole(refused) => Err(AttemptFailure {
            error: refused.error(),
            outcome: refused.outcome,
        }),
    }
}

/// A refusal with the time for which it holds, if its server has sent that.
pub(crate) fn with_retry_time(error: Error, outcome: Outcome) -> Error {
    match outcome.asks_for() {
        Some(seconds) => for_seconds(error, seconds),
        None => error,
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

/// What the server does, unless the lease is taken back first, with the reason why. A worker that ends breaks the connection
/// itself.
pub(super) async fn unless_cut<T>(
    lease: &dyn Lease,
    done: impl Future<Output = T>,
) -> Result<T, Error> {
    let Some(revoked) = lease.revoked() else {
        return Ok(done.await);
    };
    tokio::select! {
        biased;
        reason = revoked => Err(reason),
        done = done => Ok(done),
    }
}

/// The key of the lease's endpoint, if it has one.
async fn key(inference: &Inference, lease: &dyn Lease) -> Result<Option<SecretString>, Error> {
    let Some(url) = url(lease) else {
        return Ok(None);
    };
    let name = Name::of_server(url);
    let secrets = inference.secrets.clone();
    blocking("the endpoint's key", move || secrets.get(&name)).await
}

/// With a status of 401, a client would take it for a refusal of our own token.
fn no_key(lease: &dyn Lease) -> Error {
    let url = url(lease).unwrap_or_default();
    let tier = lease.tier();
    let message =
        format!("the endpoint of {tier}, {url}, did not accept the key (401 Unauthorized)");
    let name = Name::of_server(url);
    let hint = format!("enter its key in Settings > Cloud, or run `tierbar secret set {name}`");
    Error::new(Code::Unreachable, message).hint(hint)
}

/// The cause may be the model, the prompt or the key; the server's message says which.
fn forbidden_error(lease: &dyn Lease, body: &[u8]) -> Error {
    let url = url(lease).unwrap_or_default();
    let rendered = wire::error(StatusCode::FORBIDDEN, body).message;
    let tier = lease.tier();
    let message =
        format!("the endpoint of {tier}, {url}, refused the request (403 Forbidden): {rendered}");
    let name = Name::of_server(url);
    let hint = format!(
        "if the key does not allow it, enter another in Settings > Cloud, or run `tierbar secret set {name}`"
    );
    Error::new(Code::Unreachable, message).hint(hint)
}

/// A proxy's page, or nothing at all: no client of ours could read it.
fn status_error(lease: &dyn Lease, status: StatusCode) -> Error {
    let tier = lease.tier();
    let message = format!("the server of {tier} returned {status} without an error message");
    Error::new(Code::Unreachable, message).hint("check its log, then try again")
}

/// Why the worker's connection broke, as its lease says.
pub(super) async fn broken_connection_error(
    lease: &dyn Lease,
    broken: &ConnectionFailure,
) -> Error {
    if let ConnectionFailure::NoRoom(full) = broken {
        return full.clone();
    }
    let tier = lease.tier();
    if let Some(url) = url(lease) {
        let message = format!("the endpoint of {tier}, {url}, {broken}");
        return Error::new(Code::Unreachable, message).hint(
            "check that the server is running and that its address is right, then try again",
        );
    }
    let ended = timeout(REASON_DEADLINE, lease.ended()).await;
    ended.unwrap_or_else(|_| {
        let message = format!("the worker of {tier} ended its answer early: {broken}");
        Error::new(Code::WorkerCrashed, message)
            .hint("try again; if it happens again, stop and start the tier")
    })
}

//! Finds who answers a request, a tier or a chain, and answers it over HTTP or as events.
//!
//! Prompts and answers are not logged, unless `[log] prompts` asks for prompts.

use super::{
    Inference, TOKENS, answers, auto,
    caller::Caller,
    chain::{self, Steps},
    charge::Charge,
    hints::Hints,
    models,
    original::{Form, Original},
    prompts,
    relay::{
        attempt::{self, ServerAnswer, WholeAnswer},
        gathered,
        streaming::{Beginning, Relay, as_stream, events},
        who_answers,
    },
    request::{Request, is_generated},
    route,
    source::Source,
};
use crate::{
    body,
    metrics::trace,
    response::{self, Response},
};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tierbar_core::{Code, Error, TierId, lease::Purpose};
use tokio::time::timeout;

/// Plain failures, such as a missing file, come within this time and get a status of their own. After it, a stream begins before its
/// answer.
const FAST_FAILURE: Duration = Duration::from_secs(2);

/// Marks a failed response whose request may be queued, as if its client had allowed it.
#[derive(Debug, Clone, Copy)]
pub struct QueuePermission;

/// Answers a client's request over HTTP.
///
/// # Errors
/// Those of the body, of the way to a tier, and whatever keeps the answer from beginning.
pub async fn answer(
    inference: Arc<Inference>,
    path: &'static str,
    hints: Hints,
    body: Bytes,
    arrived: Instant,
) -> Result<Response, Error> {
    prompts::log(inference.services.config().log, path, || &body);
    let request = Request::read(path, hints, body, arrived)?;
    let caller = Caller::of_this_request();
    let begun = begin(&inference, request, caller).await?;
    begun.respond().await
}

/// Returns the body of an answer that is not generated text: vectors, or a count.
///
/// # Errors
/// Why there is no answer.
pub async fn fetch(inference: &Arc<Inference>, request: Request) -> Result<Bytes, Error> {
    let whole = fetch_whole(inference, request).await?;
    match whole.status.is_success() {
        true => Ok(whole.body),
        false => Err(whole.error()),
    }
}

/// As [`fetch`], for the host's indexer of documents: its tokens and energy are counted, and no request, because no client made one.
///
/// # Errors
/// As [`fetch`].
pub async fn fetch_uncounted(
    inference: Arc<Inference>,
    path: &'static str,
    fields: Value,
) -> Result<Bytes, Error> {
    let request = Request::of(path, Hints::default(), fields)?;
    trace::of_indexer(fetch(&inference, request)).await
}

/// Returns an answer, or a refusal, that came whole.
async fn fetch_whole(inference: &Arc<Inference>, request: Request) -> Result<WholeAnswer, Error> {
    let log = inference.services.config().log;
    prompts::log(log, request.path, || request.content.bytes());
    let caller = Caller::of_this_request();
    let begun = begin(inference, request, caller).await?;
    match begun.beginning.sent.await? {
        ServerAnswer::Whole(whole) => Ok(whole),
        ServerAnswer::Streaming(mut answer) => gathered::gather(&mut answer).await,
    }
}

/// Finds who answers. Nothing is loaded, and no server asked, before the result is polled.
///
/// # Errors
/// `ModelUnknown`, `ModelMissing` or `BadRequest` for a request that no tier can answer.
pub async fn begin(
    inference: &Arc<Inference>,
    mut request: Request,
    caller: Caller,
) -> Result<RoutedRequest, Error> {
    let (path, metrics) = (request.path, &inference.metrics);
    // A count of tokens is part of another request.
    if path != TOKENS {
        request.trace = metrics.trace(path, caller.name(), request.arrived);
    }
    let trace = request.trace.clone();
    let begun = begin_traced(inference, request, caller).await;
    trace.check(&begun);
    begun
}

async fn begin_traced(
    inference: &Arc<Inference>,
    mut request: Request,
    caller: Caller,
) -> Result<RoutedRequest, Error> {
    let (path, generated) = (request.path, is_generated(request.path));
    let tiers = inference.tiers.snapshot();
    let model = request.model.take();
    let model = model.as_deref();
    let model = model.map(|name| route::without_latest_tag(name, &tiers));
    let fields = request.content.fields();
    caller.count(answers::requested_answers(path, fields)?);
    // Counting tokens costs nothing.
    let prompt_bytes = match &request.original {
        _ if path == TOKENS => 0,
        Some(original) if original.untranslatable.is_some() => original.bytes().len(),
        _ => request.content.prompt_bytes(),
    };
    request.charge = Charge::new(caller, prompt_bytes);
    if let Some(chain) = chain::find(inference, model, &request.hints, generated)? {
        let stream = request.stream;
        // A chain would go on to its next step, which may cost money.
        request.purpose = Purpose::Answer;
        let (beginning, steps) = chain::begin(Arc::clone(inference), chain, request);
        return Ok(RoutedRequest {
            beginning,
            stream,
            way: RequestRoute {
                steps: Some(steps),
                ..RequestRoute::default()
            },
        });
    }
    let fields = request.content.fields();
    let routed = match auto::route(inference, path, &request.hints, model, fields, &tiers).await {
        Ok(routed) => routed,
        Err(error) => return Err(models::explain_unknown_name(inference, model, error).await),
    };
    let asked = routed.tier;
    route::check_engine(&asked, &tiers, path)?;
    let smaller = route::smaller_tier(&asked, model, &tiers, &request.content);
    let smaller = smaller.filter(|_| generated);
    let source = Source {
        why: routed.why,
        stepped_down_from: smaller.is_some().then(|| asked.clone()),
        ..Source::default()
    };
    let (inference, tier) = (Arc::clone(inference), smaller.unwrap_or(asked));
    Ok(begin_on_tier(inference, tier, request, source))
}

/// Sends a request to a tier that has been found, once the result is polled. `source`: how the tier was found.
pub fn begin_on_tier(
    inference: Arc<Inference>,
    tier: TierId,
    request: Request,
    source: Source,
) -> RoutedRequest {
    let (stream, loaded) = (request.stream, Arc::new(AtomicBool::new(false)));
    let mut tiers = inference.tiers.snapshot().into_iter();
    let status = tiers.find(|status| status.id == tier);
    let early = Source {
        tier: Some(tier.clone()),
        model: status.and_then(|status| status.model),
        ..Source::default()
    };
    let (metrics, of) = (inference.metrics.clone(), tier.clone());
    let sent = {
        let loaded = Arc::clone(&loaded);
        let trace = request.trace.clone();
        Box::pin(async move {
            let sent = send_to_worker(&inference, &tier, request, &loaded).await;
            trace.check(&sent);
            sent
        })
    };
    RoutedRequest {
        beginning: Beginning {
            sent,
            loaded,
            metrics,
            of,
        },
        stream,
        way: RequestRoute {
            source,
            early,
            steps: None,
        },
    }
}

/// Sends the request, and once more to the tier's next worker if this one hung or was killed before it began to answer: the request waits
/// as one that came later does. If the worker crashed, the request may be why, and is not repeated. `loaded`: whether it has a worker.
async fn send_to_worker(
    inference: &Arc<Inference>,
    tier: &TierId,
    request: Request,
    loaded: &AtomicBool,
) -> Result<ServerAnswer, Error> {
    let send = |request: Request| async move {
        let lease = attempt::lease(inference, tier, &request).await?;
        loaded.store(true, Ordering::Relaxed);
        let sent = attempt::send(inference, request, lease).await;
        sent.map_err(|failed| failed.error)
    };
    match send(request.clone()).await {
        Err(error) if is_blameless(&error) => {
            tracing::info!(%tier, "sent again, because {error}");
            loaded.store(false, Ordering::Relaxed);
            send(request).await
        }
        sent => sent,
    }
}

/// Whether a worker was lost for a reason outside the requests that it had.
fn is_blameless(error: &Error) -> bool {
    let cause = error.details.get("cause").and_then(Value::as_str);
    matches!(error.code, Code::WorkerCrashed | Code::WorkerTimeout)
        && matches!(cause, Some("killed" | "hung"))
}

/// The number of a prompt's tokens.
#[derive(Debug)]
pub enum Count {
    Tokens(u64),
    /// In the client's own dialect, as the server sent it. It may be a refusal.
    Passed(WholeAnswer),
}

/// The number of a chat's prompt tokens, as the tier that it names counts them. Fields about streaming are left out.
///
/// # Errors
/// `BadRequest` for a tier of another engine than ours; those of [`answer`].
pub async fn count(inference: &Arc<Inference>, hints: Hints, chat: Value) -> Result<u64, Error> {
    let request = Request::of(TOKENS, hints, without_stream(chat))?;
    count_tokens(&fetch(inference, request).await?)
}

/// As [`count`], of a request in its client's own form.
///
/// # Errors
/// As [`count`].
pub async fn count_original(
    inference: &Arc<Inference>,
    hints: Hints,
    original: Original,
    chat: Result<Value, Error>,
) -> Result<Count, Error> {
    let chat = chat.map(without_stream);
    let request = Request::with_original(TOKENS, hints, original, chat)?;
    let whole = fetch_whole(inference, request).await?;
    match whole.form {
        Form::Messages | Form::Responses if whole.body.trim_ascii().starts_with(b"{") => {
            Ok(Count::Passed(whole))
        }
        _ if !whole.status.is_success() => Err(whole.error()),
        _ => Ok(Count::Tokens(count_tokens(&whole.body)?)),
    }
}

fn without_stream(mut chat: Value) -> Value {
    if let Some(chat) = chat.as_object_mut() {
        chat.retain(|field, _| !field.starts_with("stream"));
    }
    chat
}

fn count_tokens(answer: &[u8]) -> Result<u64, Error> {
    #[derive(Deserialize)]
    struct CountAnswer {
        tokens: u64,
    }
    let CountAnswer { tokens } = body::parse(answer)?;
    Ok(tokens)
}

/// A request whose way is decided.
#[derive(Debug)]
pub struct RoutedRequest {
    pub beginning: Beginning,
    /// The answer is to come as events.
    pub stream: bool,
    pub way: RequestRoute,
}

/// How a request comes to who answers it.
#[derive(Debug, Default)]
pub struct RequestRoute {
    source: Source,
    /// Who answers, as far as that is known of a stream that begins before its tier is loaded. Nothing is of a chain.
    pub(crate) early: Source,
    /// Of a chain.
    steps: Option<Steps>,
}

impl RequestRoute {
    /// Whether the request may be answered later, once it has failed now, whatever its error says.
    pub fn may_wait(&self) -> bool {
        self.steps.as_ref().is_some_and(Steps::may_wait)
    }

    /// What is known of where the answer comes from, but for who answers.
    pub fn source(&self) -> Source {
        let source = || self.source.clone();
        self.steps.as_ref().map_or_else(source, Steps::source)
    }
}

impl RoutedRequest {
    /// The answer with a status of its own if it begins soon or comes whole; else a stream that begins before it.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn respond(self) -> Result<Response, Error> {
        let Self {
            beginning,
            stream,
            way,
        } = self;
        let answer = respond(beginning, stream, &way.early).await;
        let mut response = match (answer, &way.steps) {
            (Ok(response), _) => response,
            (Err(refused), None) => return Err(refused),
            (Err(refused), Some(_)) => {
                let mut response = response::failed(refused);
                if way.may_wait() {
                    response.extensions_mut().insert(QueuePermission);
                }
                response
            }
        };
        response.headers_mut().extend(way.source().headers());
        Ok(response)
    }
}

/// The state of a request when its client gets the response's head.
#[derive(Debug)]
pub enum AnswerStart {
    Sent(ServerAnswer),
    /// The answer has not begun.
    Later(Beginning),
}

/// Waits for the beginning of an answer, of one that streams only as long as plain failures take.
///
/// # Errors
/// Why there is no answer.
pub async fn first(mut beginning: Beginning, stream: bool) -> Result<AnswerStart, Error> {
    match timeout(FAST_FAILURE, &mut beginning.sent).await {
        Ok(sent) => Ok(AnswerStart::Sent(sent?)),
        Err(_) if stream => Ok(AnswerStart::Later(beginning)),
        Err(_) => Ok(AnswerStart::Sent(beginning.sent.await?)),
    }
}

async fn respond(beginning: Beginning, stream: bool, early: &Source) -> Result<Response, Error> {
    let sent = match first(beginning, stream).await? {
        AnswerStart::Sent(sent) => sent,
        AnswerStart::Later(beginning) => {
            return Ok(events(early.headers(), Relay::Beginning(beginning)));
        }
    };
    Ok(match sent {
        ServerAnswer::Whole(whole) if stream && whole.status.is_success() => as_stream(whole),
        ServerAnswer::Whole(whole) => whole.into(),
        ServerAnswer::Streaming(mut answer) if !stream => {
            gathered::gather(&mut answer).await?.into()
        }
        ServerAnswer::Streaming(answer) => {
            let headers = who_answers(answer.lease(), None);
            events(headers, Relay::Streaming(answer))
        }
    })
}

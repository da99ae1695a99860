//! A request, relayed: find who is to answer, hold a lease on it for as long as the answer streams, pass the bytes on.
//!
//! Nothing here is a task of its own. When the client goes away the server drops the handler or the body, and with
//! it the place in the queue, or the worker's connection and the lease. Prompts and answers are never logged.

mod answered;
pub(crate) mod attempt;
pub(crate) mod gathered;
pub(crate) mod streaming;
mod unstreamed;

use super::{models, owed::Owed, route, wire};
use crate::{
    http::{body, error::Failure, headers::TIER},
    inference::{Inference, auto, chain, hints::Hints, prompts},
};
use attempt::{ANSWER_LIMIT, Sent};
use axum::{
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue},
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use serde_json::Value;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use streaming::{Beginning, Relay, as_stream, events};
use tierbar_core::{ModelId, TierId, lease::KeepAlive};
use tokio::time::timeout;

/// What fails for a plain reason, such as a missing file, does so within this time and gets a status of its own. After it, a
/// stream begins before its answer does.
const FAST_FAILURE: Duration = Duration::from_secs(2);

static MODEL: HeaderName = HeaderName::from_static("x-tierbar-model");
static WHY: HeaderName = HeaderName::from_static("x-tierbar-why");
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

/// A request that has been read.
#[derive(Clone)]
pub(crate) struct Ask {
    pub(crate) path: &'static str,
    pub(crate) body: Vec<u8>,
    /// The answer is to come as events.
    pub(crate) stream: bool,
    pub(crate) keep_alive: Option<KeepAlive>,
    pub(crate) arrived: Instant,
    pub(crate) owed: Owed,
}

/// A request on its way to a tier that has been found.
pub(crate) struct Job {
    pub(crate) inference: Arc<Inference>,
    pub(crate) tier: TierId,
    /// The tier that it names, if another stands in for that.
    pub(crate) stands_in_for: Option<TierId>,
    /// Why the router chose the tier, if it did.
    pub(crate) why: Option<String>,
    pub(crate) ask: Ask,
}

pub(crate) async fn relay(
    inference: Arc<Inference>,
    path: &'static str,
    hints: Hints,
    body: Body,
) -> Result<Response, Failure> {
    let arrived = Instant::now();
    let body = body::read(body, body::INFERENCE_LIMIT).await?;
    prompts::log(inference.services.config().log, path, &body);
    let wanted: Wanted = body::parse(&body)?;
    let model = wanted.model.as_deref();
    // Vectors of another model mean nothing beside each other, and a context is kept where it lies.
    let speaks = path == super::CHAT || path == super::TEXT;
    let ask = Ask {
        path,
        stream: speaks && wanted.stream == Some(true),
        keep_alive: wanted.keep_alive,
        arrived,
        // To be told what something would cost costs nothing.
        owed: Owed::of(if path == super::TOKENS { b"" } else { &body }),
        body,
    };
    if let Some(chain) = chain::asked(&inference, model, &hints, speaks)? {
        return chain::relay(inference, chain, ask).await;
    }
    let tiers = inference.tiers.snapshot();
    let routed = match auto::route(&inference, path, &hints, model, &ask.body, &tiers).await {
        Ok(routed) => routed,
        Err(error) => return Err(models::explained(&inference, model, error).await.into()),
    };
    let asked = routed.tier;
    route::check_engine(&asked, &tiers, path)?;
    let smaller = route::smaller(&asked, model, &tiers, &ask.body);
    let smaller = smaller.filter(|_| speaks);
    let job = Job {
        inference,
        stands_in_for: smaller.is_some().then(|| asked.clone()),
        tier: smaller.unwrap_or(asked),
        why: routed.why,
        ask,
    };
    job.relay().await
}

/// How many tokens a chat would be read as, by the tier that it names. Nothing of a stream is asked for: the answer is a number.
///
/// # Errors
/// `BadRequest` for a tier of another engine than ours; those of [`relay`].
pub(crate) async fn count(
    inference: Arc<Inference>,
    hints: Hints,
    mut chat: Value,
) -> Result<u64, Failure> {
    #[derive(Deserialize)]
    struct Counted {
        tokens: u64,
    }
    if let Some(chat) = chat.as_object_mut() {
        chat.retain(|field, _| !field.starts_with("stream"));
    }
    let body = body::whole(chat.to_string().into_bytes());
    let answer = relay(inference, super::TOKENS, hints, body).await?;
    let (head, body) = answer.into_parts();
    let body = body::read(body, ANSWER_LIMIT).await?;
    if !head.status.is_success() {
        return Err(Failure(wire::refusal(&head, &body)));
    }
    let Counted { tokens } = body::parse(&body)?;
    Ok(tokens)
}

impl Job {
    pub(crate) async fn relay(self) -> Result<Response, Failure> {
        let told = [
            (&WHY, self.why.clone()),
            (
                &STEPPED_DOWN,
                self.stands_in_for.as_ref().map(ToString::to_string),
            ),
        ];
        let mut response = self.answer().await?;
        for (name, value) in told {
            if let Some(Ok(value)) = value.map(HeaderValue::try_from) {
                response.headers_mut().insert(name.clone(), value);
            }
        }
        Ok(response)
    }

    async fn answer(self) -> Result<Response, Failure> {
        let Self {
            inference,
            tier,
            ask,
            ..
        } = self;
        let (stream, loaded) = (ask.stream, Arc::new(AtomicBool::new(false)));
        let sent = {
            let (inference, tier, loaded) =
                (Arc::clone(&inference), tier.clone(), Arc::clone(&loaded));
            Box::pin(async move {
                let lease = attempt::lease(&inference, &tier).await?;
                loaded.store(true, Ordering::Relaxed);
                let sent = attempt::send(&inference, ask, lease).await;
                sent.map_err(|failed| failed.error)
            })
        };
        let failed = {
            let (metrics, tier) = (inference.metrics.clone(), tier.clone());
            Box::new(move |code| metrics.broke(tier.as_str(), code))
        };
        let early = || {
            let mut tiers = inference.tiers.snapshot().into_iter();
            let status = tiers.find(|status| status.id == tier);
            who_answers(&tier, status.and_then(|status| status.model).as_ref())
        };
        let beginning = Beginning {
            sent,
            loaded,
            failed,
        };
        respond(beginning, stream, early).await
    }
}

/// The answer with a status of its own if it begins soon or is to come whole; else a stream with these headers that begins
/// before it.
///
/// # Errors
/// Why there is no answer.
pub(crate) async fn respond(
    mut beginning: Beginning,
    stream: bool,
    early: impl FnOnce() -> HeaderMap,
) -> Result<Response, Failure> {
    let sent = match timeout(FAST_FAILURE, &mut beginning.sent).await {
        Ok(sent) => sent?,
        Err(_) if stream => return Ok(events(early(), Relay::Beginning(beginning))),
        Err(_) => beginning.sent.await?,
    };
    Ok(match sent {
        Sent::Whole(whole) if stream && whole.status.is_success() => as_stream(whole),
        Sent::Whole(whole) => whole.into_response(),
        Sent::Streaming(mut answer) if !stream => {
            gathered::unasked(&mut answer).await?.into_response()
        }
        Sent::Streaming(answer) => {
            let headers = who_answers(answer.lease().tier(), Some(answer.lease().model()));
            events(headers, Relay::Streaming(answer))
        }
    })
}

pub(crate) fn who_answers(tier: &TierId, model: Option<&ModelId>) -> HeaderMap {
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

/// The model that answers, as the answer's headers name it.
pub(crate) fn model(answer: &Response) -> Option<String> {
    let model = answer.headers().get(&MODEL)?;
    Some(String::from_utf8_lossy(model.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests;

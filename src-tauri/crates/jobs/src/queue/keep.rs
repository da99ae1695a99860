//! The middleware around the routes of inference: a request that cannot be answered now and may wait is stored, then its client gets `202`.

use super::{
    now_ms,
    options::{self, Options, QueueMode},
    render, room,
    setback::{self, FailedAttempt},
};
use crate::{
    Jobs,
    documents::{not_queued, searches_files},
};
use axum::{
    Json,
    body::Body,
    extract::State,
    http::{Extensions, HeaderName, HeaderValue, Method, Request, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use data_encoding::HEXLOWER;
use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::{borrow::Cow, sync::Arc};
use tierbar_core::{
    Code, Error,
    queue::{JobStatus, Setback, first_retry_at},
};
use tierbar_edge::{keys::Sender, sessions::check_fresh};
use tierbar_http::error::Failure;
use tierbar_inference::{body, caller::Caller};
use tierbar_store::{AddedJob, JobRequest, NewJob};

/// On a failure whose request could not be kept.
static QUEUE: HeaderName = HeaderName::from_static("x-tierbar-queue");

pub async fn keep(State(jobs): State<Arc<Jobs>>, request: Request<Body>, next: Next) -> Response {
    if request.method() != Method::POST {
        return next.run(request).await;
    }
    let answered = now_or_later(&jobs, request, next).await;
    answered.unwrap_or_else(IntoResponse::into_response)
}

async fn now_or_later(
    jobs: &Jobs,
    request: Request<Body>,
    next: Next,
) -> Result<Response, Failure> {
    let now = now_ms();
    let (parts, body) = request.into_parts();
    let bytes = body::read_again(body).await?;
    let path = parts.uri.path_and_query();
    let options = Options::from_headers(&parts.headers, now)?;
    if let Some(url) = &options.webhook {
        let config = jobs.inference.services.config();
        check_webhook(url, &config.queue.webhook_hosts, &parts.extensions)?;
    }
    let later = QueueableRequest {
        options,
        owner: Caller::of_this_request().id(),
        path: path
            .map_or_else(|| parts.uri.path(), |path| path.as_str())
            .to_owned(),
        headers: options::of_the_request(&parts.headers),
        now,
    };
    let allowed = match later.options.when {
        Some(QueueMode::Only) => {
            // What could never be answered is refused while its client still listens.
            if !body::is_lines(&parts.headers) {
                let _: StreamField = body::parse(&bytes)?;
            }
            if searches_files(&later.path, &bytes)? {
                return Err(not_queued().into());
            }
            return Ok(later.store(jobs, &bytes, None).await?);
        }
        Some(QueueMode::Never) => {
            let request = Request::from_parts(parts, Body::from(bytes));
            return Ok(next.run(request).await);
        }
        Some(QueueMode::Allow) => true,
        None => false,
    };
    if allowed
        && later.options.key.is_some()
        && let Some(known) = jobs.store.known_job(later.job(&bytes)).await?
    {
        return Ok(answer(known)?);
    }
    let request = Request::from_parts(parts, Body::from(bytes.clone()));
    let response = next.run(request).await;
    let may_wait =
        allowed || (setback::may_wait(&response) && understands_queueing(&later.path, &bytes));
    let failed = setback::find(&response).filter(|failed| failed.setback != Setback::Final);
    let Some(failed) = failed.filter(|_| may_wait) else {
        return Ok(response);
    };
    if searches_files(&later.path, &bytes)? {
        return Ok(mark_refused(response));
    }
    match later.store(jobs, &bytes, Some(failed)).await {
        Ok(kept) => Ok(kept),
        // The failure is what its client can act on.
        Err(error) => {
            tracing::warn!("a request that may wait could not be kept: {error}");
            Ok(mark_refused(response))
        }
    }
}

/// This machine reaches servers that others, and pages, do not: beyond the listed hosts, only the owner names one.
fn check_webhook(url: &str, allowed: &[String], sender: &Extensions) -> Result<(), Error> {
    options::check_host(url, allowed).or_else(|refused| match sender.get::<Sender>() {
        Some(Sender::Owner) => check_fresh(sender.get(), "name a webhook"),
        _ => Err(refused),
    })
}

/// The failure of a request that may wait and is not kept.
fn mark_refused(mut response: Response) -> Response {
    let refused = HeaderValue::from_static("refused");
    response.headers_mut().insert(QUEUE.clone(), refused);
    response
}

/// Whether a client that has not named the queue understands its `202`. Readers of a stream and Ollama's clients would take it for an empty
/// answer; they get the failure.
fn understands_queueing(path: &str, body: &[u8]) -> bool {
    !path.starts_with("/api/") && !streams(path, body)
}

/// A request of which nothing else is kept.
#[derive(Deserialize, Default)]
struct StreamField {
    stream: Option<Value>,
}

/// Whether the request streams. Ollama's do by default.
fn streams(path: &str, body: &[u8]) -> bool {
    let request: StreamField = serde_json::from_slice(body).unwrap_or_default();
    match request.stream {
        Some(stream) => stream == Value::Bool(true),
        None => path.starts_with("/api/"),
    }
}

/// A request that may wait, but for its body.
struct QueueableRequest {
    options: Options,
    /// The id of the key that it came with.
    owner: Option<String>,
    path: String,
    headers: Vec<(String, String)>,
    now: u64,
}

impl QueueableRequest {
    fn job(&self, body: &[u8]) -> NewJob {
        let options = self.options.clone();
        NewJob {
            request: JobRequest {
                path: self.path.clone(),
                headers: self.headers.clone(),
                body: unstreamed(&self.path, body).into_owned(),
            },
            owner: self.owner.clone(),
            fingerprint: fingerprint(&self.path, body),
            idempotency_key: options.key,
            priority: options.priority,
            not_before_ms: self.now,
            reason: None,
            deadline_ms: options.deadline_ms,
            max_attempts: options.max_attempts,
            webhook: options.webhook,
        }
    }

    async fn store(
        &self,
        jobs: &Jobs,
        body: &[u8],
        failed: Option<FailedAttempt>,
    ) -> Result<Response, Error> {
        let room = room(&jobs.inference.services.config().queue);
        let (mut job, now) = (self.job(body), now_ms());
        if let Some(failed) = failed {
            job.reason = Some(failed.error);
            job.not_before_ms = first_retry_at(failed.retry_after, now);
        }
        let added = jobs.store.add_job(job, room, now).await?;
        if let AddedJob::New(job) = &added {
            jobs.queue.changed(&job.id);
        }
        answer(added)
    }
}

fn answer(added: AddedJob) -> Result<Response, Error> {
    match added {
        AddedJob::New(job) | AddedJob::Known(job) => Ok(accepted(&job)),
        AddedJob::OtherRequest => {
            let message = "the Idempotency-Key was used for another request";
            Err(Error::new(Code::Conflict, message).hint("give each request a key of its own"))
        }
    }
}

pub(super) fn accepted(job: &JobStatus) -> Response {
    let location = [(header::LOCATION, render::url(&job.id))];
    let status = Json(render::status_json(job));
    (StatusCode::ACCEPTED, location, status).into_response()
}

/// A queued request does not stream.
fn unstreamed<'a>(path: &str, body: &'a [u8]) -> Cow<'a, [u8]> {
    if !streams(path, body) {
        return body.into();
    }
    let Ok(mut request) = serde_json::from_slice::<Map<String, Value>>(body) else {
        return body.into();
    };
    request.insert("stream".to_owned(), false.into());
    // Refused without a stream.
    request.shift_remove("stream_options");
    serde_json::to_vec(&request).map_or(body.into(), Cow::Owned)
}

fn fingerprint(path: &str, body: &[u8]) -> String {
    let hash = Sha256::new_with_prefix(path)
        .chain_update([0])
        .chain_update(body);
    HEXLOWER.encode(&hash.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queued_request_does_not_stream() {
        let chat = "/v1/chat/completions";
        let plain = |path, body: &str| {
            String::from_utf8(unstreamed(path, body.as_bytes()).into_owned()).unwrap()
        };
        let streamed = r#"{"stream":true,"stream_options":{"include_usage":true},"seed":1}"#;
        assert_eq!(plain(chat, streamed), r#"{"stream":false,"seed":1}"#);
        for same in [r#"{ "seed" : 1 }"#, r#"{"stream": false}"#, "[]", "no JSON"] {
            assert_eq!(plain(chat, same), same);
        }
        assert_eq!(plain("/api/chat", "{}"), r#"{"stream":false}"#);
    }

    #[test]
    fn a_fingerprint_separates_path_and_body() {
        assert_ne!(fingerprint("/a", b"b"), fingerprint("/ab", b""));
        assert_eq!(fingerprint("/a", b"b").len(), 64);
    }
}

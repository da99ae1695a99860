//! What a client can do with its queued request.

use super::{
    header_map, keep, now_ms, render,
    schema::{AnyError, QueuedOutcome},
};
use crate::Jobs;
use axum::{
    Extension, Json,
    body::Body,
    extract::{Query, State, rejection::QueryRejection},
    http::StatusCode,
    response::{IntoResponse, Response, sse::Event},
};
use futures_util::{StreamExt, stream};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use tierbar_core::{Code, Error, bad_request, queue::JobStatus};
pub(super) use tierbar_edge::keys::Sender;
use tierbar_http::{
    Answer,
    error::Failure,
    path::Id,
    schema::{Queued, QueuedRequest},
    sse::{self, json_event},
};
use tierbar_store::{CanceledJob, JobAnswer, JobOutcome, Store};
use tokio::sync::broadcast::{self, error::RecvError};
use utoipa::{IntoParams, ToSchema};

/// The longest answer, in bytes, that is shown beside its request: there are some copies of it then.
const LONGEST_SHOWN: usize = 8 << 20;

/// Returns where a queued request stands, and its answer once it has ended.
#[utoipa::path(
    get,
    path = "/v1/queue/{id}",
    operation_id = "queued",
    reach(Inference, Reads),
    params(("id" = String, Path, description = "A queued request's id")),
    responses((status = 200, description = "The request", body = QueuedOutcome)),
)]
pub(super) async fn one(
    State(jobs): State<Arc<Jobs>>,
    Extension(sender): Extension<Sender>,
    Id(id): Id,
) -> Answer<Value> {
    check(&jobs, &id, sender).await?;
    let outcome = jobs.store.job_outcome(&id, false).await?;
    note_fetched(&jobs, &outcome);
    Ok(Json(render::outcome_json(&outcome, LONGEST_SHOWN)))
}

/// Returns the response as the client would have received it.
#[utoipa::path(
    get,
    path = "/v1/queue/{id}/result",
    operation_id = "queuedResult",
    reach(Inference, Reads),
    params(("id" = String, Path, description = "A queued request's id")),
    responses(
        (status = 200, description = "The response"),
        (status = 202, response = Queued),
        (status = "4XX", description = "The request was refused or failed", body = AnyError),
        (status = "5XX", description = "The request was refused or failed", body = AnyError),
    ),
)]
pub(super) async fn result(
    State(jobs): State<Arc<Jobs>>,
    Extension(sender): Extension<Sender>,
    Id(id): Id,
) -> Result<Response, Failure> {
    check(&jobs, &id, sender).await?;
    let outcome = jobs.store.job_outcome(&id, false).await?;
    if !outcome.status.state.has_ended() {
        return Ok(keep::accepted(&outcome.status));
    }
    note_fetched(&jobs, &outcome);
    let error = outcome.error;
    match outcome.answer {
        Some(answer) => Ok(response(answer)),
        None => Err(Failure(error.unwrap_or_else(|| {
            Error::new(Code::NotFound, "the request ended without an answer")
        }))),
    }
}

/// Checks that the sender may see a request.
async fn check(jobs: &Jobs, id: &str, sender: Sender) -> Result<(), Error> {
    let owner = match sender {
        Sender::Owner => return Ok(()),
        Sender::Key(id) => Some(id),
        Sender::Program => None,
    };
    jobs.store.check_job_owner(id, owner).await
}

/// Its answer may be removed for others now, which the runner may wait for.
fn note_fetched(jobs: &Jobs, outcome: &JobOutcome) {
    if outcome.status.state.has_ended() {
        jobs.queue.work.notify_one();
    }
}

fn response(answer: JobAnswer) -> Response {
    let mut response = Response::new(Body::from(answer.body));
    *response.status_mut() =
        StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    *response.headers_mut() = header_map(&answer.headers);
    response
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Cancel {
    /// Keeps a request that has ended; the answer is 409.
    #[param(inline)]
    keep: Option<KeptJobs>,
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum KeptJobs {
    Ended,
}

/// Cancels a queued request. One that has ended is deleted with its answer.
#[utoipa::path(
    delete,
    path = "/v1/queue/{id}",
    operation_id = "cancelQueued",
    reach(Inference, Writes),
    params(
        ("id" = String, Path, description = "A queued request's id"),
        Cancel,
    ),
    responses(
        (status = 200, description = "The request is canceled", body = QueuedRequest),
        (status = 204, description = "The request had ended and is deleted"),
    ),
)]
pub(super) async fn cancel(
    State(jobs): State<Arc<Jobs>>,
    Extension(sender): Extension<Sender>,
    Id(id): Id,
    asked: Result<Query<Cancel>, QueryRejection>,
) -> Result<Response, Failure> {
    let Query(Cancel { keep }) = asked
        .map_err(|wrong| bad_request(wrong.body_text()).hint("use keep=ended, or leave it out"))?;
    check(&jobs, &id, sender).await?;
    let kept = matches!(keep, Some(KeptJobs::Ended));
    let done = jobs.store.cancel_job(&id, kept, now_ms()).await?;
    jobs.queue.break_off(&id);
    jobs.queue.changed(&id);
    Ok(match done {
        CanceledJob::Now(job) => Json(render::status_json(&job)).into_response(),
        CanceledJob::Kept => {
            let message = "the request has ended and is kept";
            return Err(Failure(Error::new(Code::Conflict, message)));
        }
        CanceledJob::Removed => StatusCode::NO_CONTENT.into_response(),
    })
}

/// Follows a queued request: its state at once and at each change, until it has ended.
#[utoipa::path(
    get,
    path = "/v1/queue/{id}/events",
    operation_id = "queuedEvents",
    reach(Inference, Reads, Counts),
    params(("id" = String, Path, description = "A queued request's id")),
    responses(
        (status = 200, description = "Server-sent events", content(("text/event-stream"))),
    ),
)]
pub(super) async fn events(
    State(jobs): State<Arc<Jobs>>,
    Extension(sender): Extension<Sender>,
    Id(id): Id,
) -> Result<Response, Failure> {
    check(&jobs, &id, sender).await?;
    let states = States {
        changed: jobs.queue.changed.subscribe(),
        store: jobs.store.clone(),
        rendered: None,
        id,
    };
    // If there is none, the status says so.
    states.store.job(&states.id).await?;
    let events = stream::unfold(states, |mut states| async {
        let job = render::status_json(&states.next().await?);
        Some((json_event(Event::default().event("state"), &job), states))
    });
    let closing = jobs.inference.closing.clone().cancelled_owned();
    Ok(sse::response(events.take_until(closing)))
}

/// One watcher of one request.
struct States {
    changed: broadcast::Receiver<Arc<str>>,
    store: Store,
    rendered: Option<JobStatus>,
    id: String,
}

impl States {
    /// What is new; `None` once it has ended, or is gone.
    async fn next(&mut self) -> Option<JobStatus> {
        let rendered = self.rendered.as_ref();
        if rendered.is_some_and(|rendered| rendered.state.has_ended()) {
            return None;
        }
        loop {
            let now = self.store.job(&self.id).await.ok()?;
            if self.rendered.as_ref() != Some(&now) {
                self.rendered = Some(now.clone());
                return Some(now);
            }
            loop {
                match self.changed.recv().await {
                    Ok(other) if *other != *self.id => {}
                    Ok(_) | Err(RecvError::Lagged(_)) => break,
                    Err(RecvError::Closed) => return None,
                }
            }
        }
    }
}

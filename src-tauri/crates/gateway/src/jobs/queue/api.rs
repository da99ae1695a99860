//! What a client asks of a request that it has left here.

use super::{keep, now_ms, render};
use crate::{
    http::{error::Failure, path::Id},
    jobs::Jobs,
};
use axum::{
    Json,
    body::Body,
    extract::{Query, State, rejection::QueryRejection},
    http::{HeaderName, HeaderValue, StatusCode},
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures_util::{Stream, StreamExt, stream};
use serde::Deserialize;
use serde_json::Value;
use std::{convert::Infallible, sync::Arc, time::Duration};
use tierbar_core::{Code, Error, queue::JobStatus};
use tierbar_store::{Cancelled, JobAnswer, JobOutcome, Store};
use tokio::sync::broadcast::{self, error::RecvError};

/// Often enough for proxies.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

pub(crate) async fn one(State(jobs): State<Arc<Jobs>>, Id(id): Id) -> Result<Json<Value>, Failure> {
    let outcome = jobs.store.job_outcome(&id, false).await?;
    note_fetched(&jobs, &outcome);
    Ok(Json(render::outcome_json(&outcome, usize::MAX)))
}

/// The response, as its client would have had it.
pub(crate) async fn result(State(jobs): State<Arc<Jobs>>, Id(id): Id) -> Result<Response, Failure> {
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

/// Its answer may leave for others now, which may be what the runner waits for.
fn note_fetched(jobs: &Jobs, outcome: &JobOutcome) {
    if outcome.status.state.has_ended() {
        jobs.queue.0.work.notify_one();
    }
}

fn response(answer: JobAnswer) -> Response {
    let mut response = Response::new(Body::from(answer.body));
    *response.status_mut() =
        StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in answer.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            response.headers_mut().append(name, value);
        }
    }
    response
}

#[derive(Deserialize)]
pub(crate) struct Cancel {
    /// One that has ended is kept: it may have done so since whoever asks has looked.
    #[serde(default)]
    keep: Option<Keep>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Keep {
    Ended,
}

/// What has not ended is called off, what has is forgotten.
pub(crate) async fn cancel(
    State(jobs): State<Arc<Jobs>>,
    Id(id): Id,
    asked: Result<Query<Cancel>, QueryRejection>,
) -> Result<Response, Failure> {
    let Query(Cancel { keep }) = asked.map_err(|wrong| {
        Error::new(Code::BadRequest, wrong.body_text()).hint("use keep=ended, or leave it out")
    })?;
    let kept = matches!(keep, Some(Keep::Ended));
    let done = jobs.store.cancel_job(&id, kept, now_ms()).await?;
    jobs.queue.break_off(&id);
    jobs.queue.changed(&id);
    Ok(match done {
        Cancelled::Now(job) => Json(render::status_json(&job)).into_response(),
        Cancelled::Kept => {
            let message = "the request has ended and is kept";
            return Err(Failure(Error::new(Code::Conflict, message)));
        }
        Cancelled::Removed => StatusCode::NO_CONTENT.into_response(),
    })
}

pub(crate) async fn events(
    State(jobs): State<Arc<Jobs>>,
    Id(id): Id,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>> + Send>, Failure> {
    let states = States {
        changed: jobs.queue.0.changed.subscribe(),
        store: jobs.store.clone(),
        rendered: None,
        id,
    };
    // That there is none is said by a status.
    states.store.job(&states.id).await?;
    let events = stream::unfold(states, |mut states| async {
        let job = states.next().await?;
        let event = Event::default().event("state");
        Some((
            Ok(event.data(render::status_json(&job).to_string())),
            states,
        ))
    });
    let closing = jobs.inference.closing.clone().cancelled_owned();
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    Ok(Sse::new(events.take_until(closing)).keep_alive(keep_alive))
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
        if self
            .rendered
            .as_ref()
            .is_some_and(|rendered| rendered.state.has_ended())
        {
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

//! Runs queued requests: takes them in their order, sends each through the routes of inference, and records the outcome.

use super::{millis, now_ms, room, setback, webhook};
use crate::{
    Jobs,
    storing::{AGAIN, until_stored},
};
use axum::{
    Router,
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue, Request},
};
use std::{sync::Arc, time::Duration};
use tierbar_core::{
    Code, Error,
    policy::Stance,
    queue::{Attempt, JobState, NextStep, Setback, expired_error, next_step},
};
use tierbar_http::reach::{Reach, Reaches};
use tierbar_inference::{body, caller::Caller, error::seconds_of, moment::Moment};
use tierbar_store::{Claim, Ending, JobAnswer, Turn};
use tokio::{task::JoinSet, time::sleep};
use tokio_util::task::AbortOnDropHandle;
use tower::ServiceExt;

/// Bytes, as the limit of any answer.
const ANSWER_LIMIT: usize = 64 << 20;
/// How often the clock is read while something is due later: it may be set, and the machine may sleep.
const LOOK: Duration = Duration::from_secs(60);

/// The task that runs queued requests. There is one for each data folder.
#[derive(Debug)]
pub struct QueueRunner {
    pub jobs: Arc<Jobs>,
    /// Without what is around them: a request of the queue's is not queued again.
    inference: Router,
    reaches: Reaches,
}

impl QueueRunner {
    pub fn new(jobs: Arc<Jobs>, inference: Router, reaches: Reaches) -> Self {
        Self {
            jobs,
            inference,
            reaches,
        }
    }

    /// Runs until the host ends and the turns of chats have stored their answers, and gives back what it has not finished. Also erases the
    /// chats that were deleted before the start.
    pub async fn run(self) {
        let closing = self.jobs.inference.closing.clone();
        // What was deleted shortly before this start can still be restored.
        self.jobs.erase_deleted_chats_later();
        while let Err(error) = self.jobs.store.recover_jobs(now_ms()).await {
            tracing::error!("the queue cannot start: {error}");
            if closing.run_until_cancelled(sleep(AGAIN)).await.is_none() {
                return self.jobs.turns.drain().await;
            }
        }
        tokio::join!(self.attempts(), webhook::deliver(&self.jobs));
        self.jobs.turns.drain().await;
    }

    async fn attempts(&self) {
        let closing = &self.jobs.inference.closing;
        let (mut running, mut full) = (JoinSet::new(), false);
        let mut looked = Moment::now();
        while !closing.is_cancelled() {
            let wait = self
                .begin(&mut running, &mut full, &mut looked)
                .await
                .unwrap_or_else(|error| {
                    tracing::error!("the queue cannot be read: {error}");
                    Wait::For(AGAIN)
                });
            tokio::select! {
                () = closing.cancelled() => break,
                () = self.jobs.queue.0.work.notified() => {}
                Some(_) = running.join_next() => {}
                () = self.over(wait) => {}
            }
        }
        // Each of them sees the end itself, and gives its request back.
        while running.join_next().await.is_some() {}
    }

    /// Starts the jobs that may start now, and returns what to wait for. `looked`: when this was called last.
    async fn begin(
        &self,
        running: &mut JoinSet<()>,
        full: &mut bool,
        looked: &mut Moment,
    ) -> Result<Wait, Error> {
        let store = &self.jobs.store;
        let now = Moment::now();
        if let Some(by) = looked.set_back_until(now) {
            tracing::info!("the system's clock was set back by {} s", by.as_secs());
            store.shift_job_waits(millis(by)).await?;
        }
        *looked = now;
        let config = self.jobs.inference.services.config().queue.clone();
        let keep = millis(config.keep.0);
        for id in store.tidy_jobs(keep, now_ms()).await? {
            self.jobs.queue.changed(&id);
        }
        let blocked = loop {
            if running.len() >= usize::from(config.at_once) {
                break Some(Wait::ForWork);
            }
            if self.is_paused() {
                break Some(Wait::ForResume);
            }
            let turn = store.claim_job(room(&config), now_ms()).await?;
            let was_full = std::mem::replace(full, turn == Turn::Full);
            if *full && !was_full {
                tracing::warn!(
                    "the queue is full: its answers take the {} that they may, and have not been fetched",
                    config.bytes
                );
            }
            match turn {
                Turn::Empty => break None,
                Turn::Full => break Some(Wait::ForWork),
                Turn::Of(claim) => {
                    let path = claim.request.path.split('?').next();
                    let reach = path.and_then(|path| self.reaches.of(path, "POST"));
                    let (jobs, inference) = (Arc::clone(&self.jobs), self.inference.clone());
                    running.spawn(attempt(jobs, inference, *claim, reach));
                }
            }
        };
        let due = store.next_job_ms(keep, blocked.is_none()).await?;
        let due = due.map(|at| Duration::from_millis(at.saturating_sub(now_ms())).min(LOOK));
        Ok(match (blocked, due) {
            (Some(Wait::ForResume), due) if store.next_job_ms(keep, true).await?.is_some() => {
                Wait::ForResumeOr(due.unwrap_or(LOOK))
            }
            (_, Some(due)) => Wait::For(due),
            (_, None) => Wait::ForWork,
        })
    }

    fn is_paused(&self) -> bool {
        self.jobs.inference.services.status().guard.stance == Stance::Paused
    }

    async fn over(&self, wait: Wait) {
        match wait {
            Wait::For(length) => sleep(length).await,
            Wait::ForResumeOr(length) => {
                // Watching has the machine read more often, so it is watched only while something waits for it.
                let mut status = self.jobs.inference.services.watch();
                let resumed = status.wait_for(|status| status.guard.stance != Stance::Paused);
                tokio::select! {
                    _ = resumed => {}
                    () = sleep(length) => {}
                }
            }
            Wait::ForWork | Wait::ForResume => std::future::pending().await,
        }
    }
}

/// What the runner waits for beside news.
enum Wait {
    For(Duration),
    ForResumeOr(Duration),
    ForResume,
    ForWork,
}

/// How an attempt went.
enum Outcome {
    Answered(JobAnswer),
    Badly {
        setback: Setback,
        answer: Option<JobAnswer>,
        error: Error,
        retry_after: Option<Duration>,
    },
    Late,
    HostEnds,
}

async fn attempt(jobs: Arc<Jobs>, inference: Router, claim: Claim, reach: Option<Reach>) {
    let queue = jobs.queue.clone();
    let running = queue.begins(&claim.id);
    queue.changed(&claim.id);
    // It may have been called off before it was listed.
    match jobs.store.job(&claim.id).await {
        Ok(job) if job.state != JobState::Running => return,
        Err(error) if error.code == Code::NotFound => return,
        _ => {}
    }
    // A panic on the way is an answer too, and ends this request alone.
    let sending = AbortOnDropHandle::new(tokio::spawn(send_for_key(
        Arc::clone(&jobs),
        inference,
        claim.clone(),
        reach,
    )));
    let left = Duration::from_millis(claim.deadline_ms.saturating_sub(now_ms()));
    let went = tokio::select! {
        biased;
        () = running.broken_off.cancelled() => return,
        () = jobs.inference.closing.cancelled() => Outcome::HostEnds,
        went = sending => went.unwrap_or_else(|ended| {
            final_failure(Error::new(Code::Internal, format!("the request was not finished: {ended}")))
        }),
        () = sleep(left) => Outcome::Late,
    };
    record(&jobs, &claim, went).await;
    drop(running);
    queue.changed(&claim.id);
}

fn final_failure(error: Error) -> Outcome {
    Outcome::Badly {
        setback: Setback::Final,
        answer: None,
        error,
        retry_after: None,
    }
}

/// Runs the request for the API key that it came with, if any. A revoked key gets no answers, one without tokens waits for them,
/// and all wait for room in the memory of requests.
async fn send_for_key(
    jobs: Arc<Jobs>,
    inference: Router,
    claim: Claim,
    reach: Option<Reach>,
) -> Outcome {
    let owner = claim.owner.as_deref();
    let caller = owner.map_or(Ok(Caller::default()), |id| jobs.keys.caller(id));
    let headers = header_map(&claim.request.headers);
    let is_lines = reach.is_some_and(|reach| reach.reads_lines(&headers));
    let memory = body::memory_of(&claim.request.body, is_lines);
    let weight = memory.and_then(|memory| {
        jobs.keys
            .charge(owner, claim.request.body.len().saturating_add(memory))
    });
    match (caller, weight) {
        (Ok(caller), Ok(_weight)) => caller.scope(send(inference, claim)).await,
        (Err(error), _) | (_, Err(error)) => key_failure(error),
    }
}

fn header_map(headers: &[(String, String)]) -> HeaderMap {
    let header = |(name, value): &(String, String)| {
        let name = HeaderName::try_from(name).ok()?;
        Some((name, HeaderValue::try_from(value).ok()?))
    };
    headers.iter().filter_map(header).collect()
}

fn key_failure(error: Error) -> Outcome {
    let wait = seconds_of(&error).map(Duration::from_secs);
    Outcome::Badly {
        setback: match wait {
            Some(_) => Setback::NotTried,
            None => Setback::Final,
        },
        answer: None,
        error,
        retry_after: wait,
    }
}

async fn send(inference: Router, claim: Claim) -> Outcome {
    let mut request = Request::post(&claim.request.path);
    for (name, value) in &claim.request.headers {
        request = request.header(name, value);
    }
    let request = match request.body(Body::from(claim.request.body)) {
        Ok(request) => request,
        Err(error) => return final_failure(Error::new(Code::Internal, error.to_string())),
    };
    let response = match inference.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    let setback = setback::find(&response).map(|setback| {
        let (error, retry_after) = (setback::error(&response), setback::retry_after(&response));
        (setback, error, retry_after)
    });
    let (parts, body) = response.into_parts();
    let headers = kept_headers(&parts.headers);
    let answer = match body::read(body, ANSWER_LIMIT).await {
        Ok(body) => JobAnswer {
            status: parts.status.as_u16(),
            headers,
            body: body.into(),
        },
        Err(error) => {
            let message = format!("the answer cannot be kept: {}", error.message);
            return final_failure(Error::new(error.code, message));
        }
    };
    match setback {
        None => Outcome::Answered(answer),
        Some((setback, error, retry_after)) => Outcome::Badly {
            setback,
            answer: Some(answer),
            error,
            retry_after,
        },
    }
}

/// Those that mean something without the connection.
fn kept_headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let rendered = headers
        .iter()
        .filter(|(name, _)| *name == "content-type" || name.as_str().starts_with("x-tierbar-"));
    rendered
        .filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())))
        .collect()
}

/// What is to be written down.
enum Record {
    End(Ending),
    Defer(u64, Option<Error>, bool),
}

fn judge(claim: &Claim, went: Outcome, now: u64) -> Record {
    let end = |state, answer, error| {
        Record::End(Ending {
            state,
            answer,
            error,
        })
    };
    match went {
        Outcome::Answered(answer) => end(JobState::Done, Some(answer), None),
        Outcome::HostEnds => Record::Defer(now, None, false),
        Outcome::Late => {
            let error = Error::new(Code::WorkerTimeout, "it was not answered by its deadline");
            end(JobState::Expired, None, Some(error))
        }
        Outcome::Badly {
            setback,
            answer,
            error,
            retry_after,
        } => {
            let attempt = Attempt {
                id: &claim.id,
                attempts: claim.attempts,
                max_attempts: claim.max_attempts,
                deadline_ms: claim.deadline_ms,
                retry_after,
            };
            match next_step(attempt, setback, now) {
                NextStep::Again(at) => Record::Defer(at, Some(error), setback == Setback::Passing),
                NextStep::Ends(JobState::Expired) => {
                    end(JobState::Expired, None, Some(expired_error(Some(&error))))
                }
                NextStep::Ends(state) => end(state, answer, Some(error)),
            }
        }
    }
}

/// Tries until it is stored, since an answer has its cost. What is not stored when the host ends runs again.
async fn record(jobs: &Jobs, claim: &Claim, went: Outcome) {
    let record = judge(claim, went, now_ms());
    let store = &jobs.store;
    let closing = &jobs.inference.closing;
    let record = &record;
    let store = || async move {
        let recorded = match record {
            Record::End(ending) => store.end_job(claim, ending.clone(), now_ms()).await,
            Record::Defer(at, why, counts) => {
                store.defer_job(claim, *at, why.clone(), *counts).await
            }
        };
        recorded.map(drop)
    };
    until_stored(closing, "the outcome of a queued request", store).await;
}

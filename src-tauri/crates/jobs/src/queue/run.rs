//! Runs queued requests: takes them in their order, sends each through the routes of inference, and records the outcome.

use super::{
    LOOK, header_map, kept_headers, now_ms, room,
    setback::{self, FailedAttempt},
    wait_until, webhook,
};
use crate::{
    Jobs,
    storing::{AGAIN, until_stored},
};
use axum::{Router, body::Body, http::Request};
use std::{sync::Arc, time::Duration};
use tierbar_core::{
    Code, Error,
    policy::Stance,
    queue::{Attempt, JobState, NextStep, Setback, expired_error, millis, next_step},
};
use tierbar_http::reach::{Reach, Reaches};
use tierbar_inference::{body, caller::Caller, error::seconds_of, moment::Moment};
use tierbar_store::{Claim, Ending, JobAnswer, NextJob};
use tokio::{task::JoinSet, time::sleep};
use tokio_util::task::AbortOnDropHandle;
use tower::ServiceExt;

/// Bytes, as the limit of any answer.
const ANSWER_LIMIT: usize = 64 << 20;

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
                () = self.jobs.queue.work.notified() => {}
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
        if let Some(by_ms) = looked.clock_set_until(now) {
            let way = if by_ms < 0 { "back" } else { "forward" };
            let seconds = by_ms.unsigned_abs() / 1000;
            tracing::info!("the system's clock was set {way} by {seconds} s");
            store.shift_job_waits(by_ms, now_ms()).await?;
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
            let next = store.claim_job(room(&config), now_ms()).await?;
            let was_full = std::mem::replace(full, next == NextJob::Full);
            if *full && !was_full {
                tracing::warn!(
                    "the queue is full: its answers take the {} that they may, and have not been fetched",
                    config.bytes
                );
            }
            match next {
                NextJob::Empty => break None,
                NextJob::Full => break Some(Wait::ForWork),
                NextJob::Claimed(claim) => {
                    let path = claim.request.path.split('?').next();
                    let reach = path.and_then(|path| self.reaches.reach_of(path, "POST"));
                    let (jobs, inference) = (Arc::clone(&self.jobs), self.inference.clone());
                    running.spawn(attempt(jobs, inference, *claim, reach));
                }
            }
        };
        let due = store.next_job_ms(keep, blocked.is_none()).await?;
        let due = due.map(wait_until);
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

async fn attempt(jobs: Arc<Jobs>, inference: Router, claim: Claim, reach: Option<Reach>) {
    let begun = Moment::now();
    let queue = &jobs.queue;
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
    let outcome = tokio::select! {
        biased;
        () = running.broken_off.cancelled() => return,
        () = jobs.inference.closing.cancelled() => Outcome::Defer(now_ms(), None, false),
        sent = sending => {
            let sent = match sent {
                Ok(sent) => sent,
                Err(ended) => {
                    let message = format!("the request was not finished: {ended}");
                    Err(Error::new(Code::Internal, message).into())
                }
            };
            judge(&claim, deadline_at(claim.deadline_ms, begun, Moment::now()), sent)
        }
        () = sleep(left) => {
            let error = Error::new(Code::WorkerTimeout, "it was not answered by its deadline");
            Outcome::end(JobState::Expired, None, Some(error))
        }
    };
    record(&jobs, &claim, &outcome).await;
    drop(running);
    queue.changed(&claim.id);
}

/// Runs the request for the API key that it came with, if any. A revoked key gets no answers, one without tokens waits for them,
/// and all wait for room in the memory of requests.
async fn send_for_key(
    jobs: Arc<Jobs>,
    inference: Router,
    claim: Claim,
    reach: Option<Reach>,
) -> Result<JobAnswer, FailedAttempt> {
    let owner = claim.owner.as_deref();
    let caller = owner.map_or(Ok(Caller::Program), |id| jobs.keys.caller(id));
    let caller = caller.map_err(key_failure)?;
    let headers = header_map(&claim.request.headers);
    let is_lines = reach.is_some_and(|reach| reach.reads_lines(&headers));
    let body = &claim.request.body;
    let memory = body::memory_of(body, is_lines).map_err(key_failure)?;
    let weight = jobs.keys.charge(owner, body.len().saturating_add(memory));
    let _weight = weight.map_err(key_failure)?;
    caller.scope(send(inference, claim)).await
}

fn key_failure(error: Error) -> FailedAttempt {
    match seconds_of(&error).map(Duration::from_secs) {
        None => error.into(),
        retry_after => FailedAttempt {
            setback: Setback::NotTried,
            retry_after,
            ..error.into()
        },
    }
}

async fn send(inference: Router, claim: Claim) -> Result<JobAnswer, FailedAttempt> {
    let mut request = Request::post(&claim.request.path);
    for (name, value) in &claim.request.headers {
        request = request.header(name, value);
    }
    let request = request.body(Body::from(claim.request.body));
    let request = request.map_err(|error| Error::new(Code::Internal, error.to_string()))?;
    let Ok(response) = inference.oneshot(request).await;
    let failed = setback::find(&response);
    let (parts, body) = response.into_parts();
    let body = body::read(body, ANSWER_LIMIT).await.map_err(|error| {
        let message = format!("the answer cannot be kept: {}", error.message);
        Error::new(error.code, message)
    })?;
    let answer = JobAnswer {
        status: parts.status.as_u16(),
        // Those that mean something without the connection.
        headers: kept_headers(&parts.headers, |name| {
            name == "content-type" || name.starts_with("x-tierbar-")
        }),
        body: body.into(),
    };
    match failed {
        None => Ok(answer),
        Some(failed) => Err(FailedAttempt {
            answer: Some(answer),
            ..failed
        }),
    }
}

/// What is to be written down of an attempt.
enum Outcome {
    End(Ending),
    /// The next attempt's time, why there is one, and whether this one counts.
    Defer(u64, Option<Error>, bool),
}

impl Outcome {
    fn end(state: JobState, answer: Option<JobAnswer>, error: Option<Error>) -> Self {
        Self::End(Ending {
            state,
            answer,
            error,
        })
    }
}

/// Returns the deadline that an attempt has begun with, moved with a clock that was set forward since, as the store moves it. After a
/// clock that was set back, the store's is the earlier one, and ends the request.
fn deadline_at(deadline_ms: u64, begun: Moment, now: Moment) -> u64 {
    let set_by = begun.clock_set_until(now).unwrap_or_default();
    deadline_ms.saturating_add(u64::try_from(set_by).unwrap_or_default())
}

fn judge(claim: &Claim, deadline_ms: u64, sent: Result<JobAnswer, FailedAttempt>) -> Outcome {
    let failed = match sent {
        Ok(answer) => return Outcome::end(JobState::Done, Some(answer), None),
        Err(failed) => failed,
    };
    let attempt = Attempt {
        id: &claim.id,
        attempts: claim.attempts,
        max_attempts: claim.max_attempts,
        deadline_ms,
        retry_after: failed.retry_after,
    };
    let error = failed.error;
    match next_step(attempt, failed.setback, now_ms()) {
        NextStep::Again(at) => Outcome::Defer(at, Some(error), failed.setback == Setback::Passing),
        NextStep::Ends(JobState::Expired) => {
            Outcome::end(JobState::Expired, None, Some(expired_error(Some(&error))))
        }
        NextStep::Ends(state) => Outcome::end(state, failed.answer, Some(error)),
    }
}

/// Tries until it is stored, since an answer has its cost. What is not stored when the host ends runs again.
async fn record(jobs: &Jobs, claim: &Claim, outcome: &Outcome) {
    let store = &jobs.store;
    let recording = || async move {
        let recorded = match outcome {
            Outcome::End(ending) => store.end_job(claim, ending.clone(), now_ms()).await,
            Outcome::Defer(at, why, counts) => {
                store.defer_job(claim, *at, why.clone(), *counts).await
            }
        };
        recorded.map(drop)
    };
    let closing = &jobs.inference.closing;
    until_stored(closing, "the outcome of a queued request", recording).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_moves_with_a_clock_that_is_set_forward() {
        const HOUR: Duration = Duration::from_secs(3600);
        let begun = Moment::now();
        let after_an_hour = |wall: Duration, asleep: Duration| {
            let now = Moment {
                wall: begun.wall + wall,
                at: begun.at + HOUR - asleep,
                asleep: begun.asleep + asleep,
            };
            deadline_at(1000, begun, now)
        };
        assert_eq!(after_an_hour(HOUR, Duration::ZERO), 1000);
        assert_eq!(after_an_hour(HOUR, HOUR / 2), 1000, "a sleep");
        assert_eq!(after_an_hour(25 * HOUR, Duration::ZERO), 1000 + 86_400_000);
        let set_back = after_an_hour(Duration::ZERO, Duration::ZERO);
        assert_eq!(set_back, 1000);
    }
}

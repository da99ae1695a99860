//! Queued requests and their answers; each step is one change of the file.
//!
//! A request is started by a claim. Only the latest claim can end or defer it, and only while it runs: so each has one
//! answer, whatever was running when a host was killed.

mod room;
mod rows;
mod webhooks;

pub use webhooks::Delivery;

use crate::{
    Store,
    sql::{self, Json, Word, signed},
};
use rusqlite::params;
use tierbar_core::{
    Code, Error,
    download::Priority,
    queue::{JobState, JobStatus},
};

/// Names and values.
pub type Headers = Vec<(String, String)>;

/// A request as it is sent later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRequest {
    pub path: String,
    pub headers: Headers,
    pub body: Vec<u8>,
}

/// A request to store.
#[derive(Debug, Clone)]
pub struct NewJob {
    pub request: JobRequest,
    /// The id of the API key that it came with.
    pub owner: Option<String>,
    pub idempotency_key: Option<String>,
    /// Distinguishes requests with the same key.
    pub fingerprint: String,
    pub priority: Priority,
    pub not_before_ms: u64,
    /// Why it waits, if it was tried.
    pub reason: Option<Error>,
    pub deadline_ms: u64,
    pub max_attempts: u32,
    pub webhook: Option<String>,
}

/// The limits of what is stored.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// Requests that have not ended.
    pub live: u64,
    /// Of these, the requests of one key.
    pub of_one_key: u64,
    /// Requests and answers together.
    pub bytes: u64,
}

/// The outcome of adding a [`NewJob`].
#[derive(Debug, Clone, PartialEq)]
pub enum AddedJob {
    New(JobStatus),
    /// The same request with the same key is already stored.
    Known(JobStatus),
    /// The key belongs to another request.
    OtherRequest,
}

/// An answer, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobAnswer {
    pub status: u16,
    pub headers: Headers,
    pub body: Vec<u8>,
}

/// A request whose turn it is. Its holder must end or defer it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub id: String,
    pub(crate) number: i64,
    /// Attempts, including this one.
    pub attempts: u32,
    pub max_attempts: u32,
    pub deadline_ms: u64,
    /// As in [`NewJob`].
    pub owner: Option<String>,
    pub request: JobRequest,
}

/// The next job to run, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextJob {
    Claimed(Box<Claim>),
    /// No job is due.
    Empty,
    /// There is no room for another answer.
    Full,
}

/// How a request ended.
#[derive(Debug, Clone)]
pub struct Ending {
    pub state: JobState,
    pub answer: Option<JobAnswer>,
    pub error: Option<Error>,
}

/// A request with its outcome.
#[derive(Debug, Clone)]
pub struct JobOutcome {
    pub status: JobStatus,
    pub answer: Option<JobAnswer>,
    /// Why it waits, or why it failed.
    pub error: Option<Error>,
}

/// The outcome of [`Store::cancel_job`].
#[derive(Debug, Clone, PartialEq)]
pub enum CanceledJob {
    Now(JobStatus),
    /// It had ended, and is deleted with its answer.
    Removed,
    /// It had ended, and is kept as requested.
    Kept,
}

/// Errors of all calls: those of the other calls, and [`Code::NotFound`] for an unknown id.
impl Store {
    /// Stores a request. Fetched answers are deleted to make room for it, oldest first.
    ///
    /// # Errors
    /// [`Code::Overloaded`] if there is no room.
    pub async fn add_job(&self, job: NewJob, room: Room, now_ms: u64) -> Result<AddedJob, Error> {
        self.write(move |change| {
            if let Some(known) = rows::find_by_key(change, &job)? {
                return Ok(known);
            }
            let size = rows::ROW_BYTES + job.request.body.len() as u64;
            room::make_room(change, room, job.owner.as_deref(), size)?;
            rows::add(change, &job, now_ms).map(AddedJob::New)
        })
        .await
    }

    /// Returns what [`Store::add_job`] would find for the job's key.
    pub async fn known_job(&self, job: NewJob) -> Result<Option<AddedJob>, Error> {
        self.read(move |connection| rows::find_by_key(connection, &job))
            .await
    }

    pub async fn job(&self, id: &str) -> Result<JobStatus, Error> {
        let id = id.to_owned();
        self.read(move |connection| rows::get(connection, &id))
            .await
    }

    /// Checks that a request is this owner's, as in [`NewJob`]; another's is as unknown as one that does not exist.
    pub async fn check_job_owner(&self, id: &str, owner: Option<String>) -> Result<(), Error> {
        let id = id.to_owned();
        let select = "SELECT owner FROM jobs WHERE id = ?1";
        self.read(move |connection| {
            let found: Option<String> = sql::first(connection, select, [&id], |row| row.get(0))?;
            match found {
                Some(found) if found == owner.unwrap_or_default() => Ok(()),
                _ => Err(no_job(&id).into()),
            }
        })
        .await
    }

    /// Returns a request with its answer, if it has one, which then counts as fetched unless it is only `glanced` at.
    pub async fn job_outcome(&self, id: &str, glanced: bool) -> Result<JobOutcome, Error> {
        let id = id.to_owned();
        self.call(move |database| {
            let found = database.read(|connection| rows::outcome(connection, &id))?;
            if found.status.state.has_ended() && !glanced {
                let fetched = "UPDATE jobs SET told = 1 WHERE id = ?1 AND told = 0";
                database.write(|change| sql::run(change, fetched, [&id]))?;
            }
            Ok(found)
        })
        .await
    }

    /// Claims the next request: of those due now, the oldest of the highest priority.
    pub async fn claim_job(&self, room: Room, now_ms: u64) -> Result<NextJob, Error> {
        self.write(move |change| {
            let next = "SELECT seq FROM jobs WHERE state = 'waiting' AND not_before_ms <= ?1 AND deadline_ms > ?1
                        ORDER BY priority DESC, seq LIMIT 1";
            let next = sql::first(change, next, [signed(now_ms)], |row| row.get(0))?;
            let Some(seq) = next else {
                return Ok(NextJob::Empty);
            };
            if !room::for_answer(change, room)? {
                return Ok(NextJob::Full);
            }
            rows::claim(change, seq).map(|claim| NextJob::Claimed(Box::new(claim)))
        })
        .await
    }

    /// Ends a claimed request; returns `false` if the claim is no longer valid, and changes nothing.
    pub async fn end_job(&self, claim: &Claim, ending: Ending, now_ms: u64) -> Result<bool, Error> {
        let (id, number) = (claim.id.clone(), claim.number);
        self.write(move |change| rows::end(change, &id, number, &ending, now_ms))
            .await
    }

    /// Queues a claimed request for another attempt; `counts` is whether this attempt counts. Returns `false` as
    /// [`Store::end_job`] does.
    pub async fn defer_job(
        &self,
        claim: &Claim,
        not_before_ms: u64,
        why: Option<Error>,
        counts: bool,
    ) -> Result<bool, Error> {
        let (id, number) = (claim.id.clone(), claim.number);
        self.write(move |change| {
            let deferred = sql::run(
                change,
                "UPDATE jobs SET state = 'waiting', not_before_ms = ?1, error = coalesce(?2, error), attempts = attempts - ?3
                 WHERE id = ?4 AND state = 'running' AND claim = ?5",
                params![signed(not_before_ms), why.map(Json), !counts, id, number],
            )?;
            Ok(deferred > 0)
        })
        .await
    }

    /// Cancels a request that has not ended. Removes one that has, unless it is to be `kept`.
    pub async fn cancel_job(
        &self,
        id: &str,
        kept: bool,
        now_ms: u64,
    ) -> Result<CanceledJob, Error> {
        let id = id.to_owned();
        self.write(move |change| {
            if rows::cancel(change, &id, now_ms)? {
                return rows::get(change, &id).map(CanceledJob::Now);
            }
            rows::get(change, &id)?;
            if kept {
                return Ok(CanceledJob::Kept);
            }
            sql::run(change, "DELETE FROM jobs WHERE id = ?1", [&id])?;
            Ok(CanceledJob::Removed)
        })
        .await
    }

    /// Queues what ran when the last host ended again, with its attempt counted, or fails it if that was the last. Call it
    /// before anything is claimed.
    pub async fn recover_jobs(&self, now_ms: u64) -> Result<(), Error> {
        self.write(move |change| rows::recover(change, now_ms))
            .await
    }

    /// Moves deadlines with the system's clock, which was set by this much, and waits if it was set back. A request of which the time
    /// shows that it came after that, or may have, keeps its deadline.
    pub async fn shift_job_waits(&self, by_ms: i64, now_ms: u64) -> Result<(), Error> {
        self.write(move |change| {
            let came_before = match by_ms < 0 {
                true => "created_ms > ?2",
                false => "created_ms <= ?2 - ?1",
            };
            let deadlines = format!(
                "UPDATE jobs SET created_ms = max(created_ms + ?1, 0), deadline_ms = max(deadline_ms + ?1, 0)
                 WHERE state IN ('waiting', 'running') AND {came_before}"
            );
            sql::run(change, &deadlines, params![by_ms, signed(now_ms)])?;
            if by_ms < 0 {
                for update in [
                    "UPDATE jobs SET not_before_ms = max(not_before_ms + ?1, 0) WHERE state = 'waiting'",
                    "UPDATE jobs SET webhook_due_ms = max(webhook_due_ms + ?1, 0) WHERE webhook_due_ms IS NOT NULL",
                ] {
                    sql::run(change, update, [by_ms])?;
                }
            }
            Ok(())
        })
        .await
    }

    /// Ends requests past their deadline, and removes those that ended `keep_ms` ago. Returns the ids of the ended ones.
    pub async fn tidy_jobs(&self, keep_ms: u64, now_ms: u64) -> Result<Vec<String>, Error> {
        self.call(move |database| {
            // Mostly there is nothing to do, and then nothing is written.
            if !database.read(|connection| room::needs_sweep(connection, keep_ms, now_ms))? {
                return Ok(Vec::new());
            }
            database.write(|change| {
                room::sweep(change, keep_ms, now_ms)?;
                rows::expire(change, now_ms)
            })
        })
        .await
    }

    /// Returns the next time at which something is due: a deadline, the end of an answer's time, and with `attempts` an
    /// attempt.
    pub async fn next_job_ms(&self, keep_ms: u64, attempts: bool) -> Result<Option<u64>, Error> {
        self.read(move |connection| room::next_ms(connection, keep_ms, attempts))
            .await
    }

    /// Lists requests, newest first; of one state, if given.
    pub async fn list_jobs(
        &self,
        state: Option<JobState>,
        limit: u32,
    ) -> Result<Vec<JobStatus>, Error> {
        let columns = rows::COLUMNS;
        let select = format!(
            "SELECT {columns} FROM jobs WHERE ?1 IS NULL OR state = ?1 ORDER BY seq DESC LIMIT ?2"
        );
        self.all(select, (state.map(Word), limit), rows::status)
            .await
    }

    /// Returns the number of requests in each state, and the bytes of all together.
    pub async fn count_jobs(&self) -> Result<(Vec<(JobState, u64)>, u64), Error> {
        let count = "SELECT state, count(*) FROM jobs GROUP BY state";
        self.read(move |connection| {
            let counts = sql::all(connection, count, [], |row| {
                Ok((row.get::<_, Word<_>>(0)?.0, row.get(1)?))
            })?;
            Ok((counts, room::bytes(connection)?))
        })
        .await
    }
}

fn no_job(id: &str) -> Error {
    let shown: String = id.chars().take(64).collect();
    let message = format!("there is no queued request \"{shown}\"");
    Error::new(Code::NotFound, message).hint("answers are kept only for a while")
}

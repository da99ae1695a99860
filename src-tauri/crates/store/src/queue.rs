//! Requests that wait, and their answers: what is kept of them, and each step as one change of the file.
//!
//! A request is begun by a claim. Only the claim that was given last can end or defer it, and only while it runs: so there is one
//! answer for each, whatever was running when a host died.

mod room;
mod rows;
mod webhooks;

pub use webhooks::Delivery;

use crate::Store;
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

/// A request to be kept.
#[derive(Debug, Clone)]
pub struct NewJob {
    pub request: JobRequest,
    /// The name of the API key that it came with.
    pub owner: Option<String>,
    pub idempotency_key: Option<String>,
    /// Tells one request from another with the same key.
    pub fingerprint: String,
    pub priority: Priority,
    pub not_before_ms: u64,
    /// Why it waits, if it was tried.
    pub reason: Option<Error>,
    pub deadline_ms: u64,
    pub max_attempts: u32,
    pub webhook: Option<String>,
}

/// How much is kept.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// Requests that have not ended.
    pub live: u64,
    /// Of them those of one key.
    pub of_one_key: u64,
    /// Requests and answers together.
    pub bytes: u64,
}

/// What became of a [`NewJob`].
#[derive(Debug, Clone, PartialEq)]
pub enum Added {
    New(JobStatus),
    /// The same request with the same key was kept before.
    Known(JobStatus),
    /// The key was given to another request.
    OtherRequest,
}

/// An answer, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobAnswer {
    pub status: u16,
    pub headers: Headers,
    pub body: Vec<u8>,
}

/// A request whose turn it is. Whoever has it is to say how it went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub id: String,
    pub(crate) number: i64,
    /// Counting this one.
    pub attempts: u32,
    pub max_attempts: u32,
    pub deadline_ms: u64,
    /// As of [`NewJob`].
    pub owner: Option<String>,
    pub request: JobRequest,
}

/// Whose turn it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    Of(Box<Claim>),
    Nobody,
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

/// A request with what it came to.
#[derive(Debug, Clone)]
pub struct JobOutcome {
    pub status: JobStatus,
    pub answer: Option<JobAnswer>,
    /// Why it waits, or why it ended as it did.
    pub error: Option<Error>,
}

/// What [`Store::cancel_job`] has done.
#[derive(Debug, Clone, PartialEq)]
pub enum Cancelled {
    Now(JobStatus),
    /// It had ended; it is gone, with its answer.
    Removed,
    /// It had ended, and was to be kept then.
    Kept,
}

/// Errors of all calls: as of the others, and [`Code::NotFound`] for an id that no request has.
impl Store {
    /// Keeps a request. What has ended and reached somebody leaves for it, the oldest first.
    ///
    /// # Errors
    /// [`Code::Overloaded`] if there is no room.
    pub async fn add_job(&self, job: NewJob, room: Room, now_ms: u64) -> Result<Added, Error> {
        self.call(move |database| {
            database.write(|change| {
                if let Some(known) = rows::known(change, &job)? {
                    return Ok(Ok(known));
                }
                let size = rows::ROW_BYTES + job.request.body.len() as u64;
                if let Err(full) = room::make(change, room, job.owner.as_deref(), size)? {
                    return Ok(Err(full));
                }
                rows::add(change, &job, now_ms).map(|job| Ok(Added::New(job)))
            })?
        })
        .await
    }

    /// What [`Store::add_job`] would find of the job's key.
    pub async fn known_job(&self, job: NewJob) -> Result<Option<Added>, Error> {
        self.call(move |database| database.read(|connection| rows::known(connection, &job)))
            .await
    }

    pub async fn job(&self, id: &str) -> Result<JobStatus, Error> {
        let id = id.to_owned();
        self.call(move |database| {
            let found = database.read(|connection| rows::find(connection, &id))?;
            found.ok_or_else(|| no_job(&id))
        })
        .await
    }

    /// With its answer, if it has one: which then has reached somebody, unless this is only `glanced` at.
    pub async fn job_outcome(&self, id: &str, glanced: bool) -> Result<JobOutcome, Error> {
        let id = id.to_owned();
        self.call(move |database| {
            let found = database.read(|connection| rows::outcome(connection, &id))?;
            let found = found.ok_or_else(|| no_job(&id))?;
            if found.status.state.has_ended() && !glanced {
                database.write(|change| rows::mark_fetched(change, &id))?;
            }
            Ok(found)
        })
        .await
    }

    /// Begins the request whose turn it is: of those that may be tried now the one of the highest priority, and of these the oldest.
    pub async fn claim_job(&self, room: Room, now_ms: u64) -> Result<Turn, Error> {
        self.call(move |database| {
            database.write(|change| {
                let Some(seq) = rows::whose_turn(change, now_ms)? else {
                    return Ok(Turn::Nobody);
                };
                if !room::for_answer(change, room)? {
                    return Ok(Turn::Full);
                }
                rows::claim(change, seq).map(|claim| Turn::Of(Box::new(claim)))
            })
        })
        .await
    }

    /// Ends what was claimed. `false`: it is not this claim's any more, and nothing has changed.
    pub async fn end_job(&self, claim: &Claim, ending: Ending, now_ms: u64) -> Result<bool, Error> {
        let (id, number) = (claim.id.clone(), claim.number);
        self.call(move |database| {
            database.write(|change| rows::end(change, &id, number, &ending, now_ms))
        })
        .await
    }

    /// Has what was claimed wait for another attempt; `counts`: this one was one. `false` as in [`Store::end_job`].
    pub async fn defer_job(
        &self,
        claim: &Claim,
        not_before_ms: u64,
        why: Option<Error>,
        counts: bool,
    ) -> Result<bool, Error> {
        let (id, number) = (claim.id.clone(), claim.number);
        self.call(move |database| {
            database.write(|change| {
                rows::defer(change, &id, number, not_before_ms, why.as_ref(), counts)
            })
        })
        .await
    }

    /// Ends one that has not ended. One that has is removed, unless it is to be `kept`.
    pub async fn cancel_job(&self, id: &str, kept: bool, now_ms: u64) -> Result<Cancelled, Error> {
        let id = id.to_owned();
        self.call(move |database| {
            let done = database.write(|change| {
                if rows::cancel(change, &id, now_ms)? {
                    return Ok(rows::find(change, &id)?.map(Cancelled::Now));
                }
                if kept {
                    return Ok(rows::find(change, &id)?.map(|_| Cancelled::Kept));
                }
                Ok(rows::remove(change, &id)?.then_some(Cancelled::Removed))
            })?;
            done.ok_or_else(|| no_job(&id))
        })
        .await
    }

    /// What ran when the last host ended waits again, its attempt counted; or has failed, if that was the last. To be called
    /// before anything is claimed.
    pub async fn recover_jobs(&self, now_ms: u64) -> Result<(), Error> {
        self.call(move |database| database.write(|change| rows::recover(change, now_ms)))
            .await
    }

    /// Ends those whose deadline has passed, and removes what ended `keep_ms` ago. The ids of those that were ended.
    pub async fn tidy_jobs(&self, keep_ms: u64, now_ms: u64) -> Result<Vec<String>, Error> {
        self.call(move |database| {
            // Mostly there is nothing to do, and nothing is written then.
            if !database.read(|connection| room::untidy(connection, keep_ms, now_ms))? {
                return Ok(Vec::new());
            }
            database.write(|change| {
                room::sweep(change, keep_ms, now_ms)?;
                rows::expire(change, now_ms)
            })
        })
        .await
    }

    /// The next moment at which time alone makes something due: a deadline, the end of an answer's time, and an attempt, if there
    /// may be any of these now.
    pub async fn next_job_ms(&self, keep_ms: u64, attempts: bool) -> Result<Option<u64>, Error> {
        self.call(move |database| {
            database.read(|connection| room::next_ms(connection, keep_ms, attempts))
        })
        .await
    }

    /// The newest first, of one state if one is named.
    pub async fn list_jobs(
        &self,
        state: Option<JobState>,
        limit: u32,
    ) -> Result<Vec<JobStatus>, Error> {
        self.call(move |database| database.read(|connection| rows::list(connection, state, limit)))
            .await
    }

    /// How many there are of each state that has any, and the bytes of all together.
    pub async fn count_jobs(&self) -> Result<(Vec<(JobState, u64)>, u64), Error> {
        self.call(|database| {
            database.read(|connection| Ok((rows::counts(connection)?, room::bytes(connection)?)))
        })
        .await
    }
}

pub(crate) fn no_job(id: &str) -> Error {
    let shown: String = id.chars().take(64).collect();
    let message = format!("there is no queued request \"{shown}\"");
    Error::new(Code::NotFound, message).hint("answers are kept for a while only")
}

/// SQLite's integers have a sign; no time and no size reaches it.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

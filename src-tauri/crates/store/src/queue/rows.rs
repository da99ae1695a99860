//! The table's rows.

use super::{AddedJob, Claim, Ending, JobAnswer, JobOutcome, JobRequest, NewJob, no_job};
use crate::sql::{self, Json, Outcome, Word, signed};
use rusqlite::{Connection, Row, params};
use tierbar_core::{
    Code, Error,
    download::Priority,
    queue::{JobState, JobStatus, LONGEST_PAUSE, WebhookState, expired_error, retry_pause},
};
use uuid::Uuid;

/// An upper estimate of a row's size without body and answer.
pub(super) const ROW_BYTES: u64 = 1024;
/// How many expire per change; the rest follows.
const AT_ONCE: u32 = 500;
pub(super) const COLUMNS: &str = "id, state, priority, path, created_ms, not_before_ms, deadline_ms, ended_ms, attempts, \
    max_attempts, status, error, webhook_state";
/// The changes of every end: the request's text is no longer needed, and its webhook is due.
const ENDS: &str = "body = x'', headers = '[]', \
    webhook_state = CASE WHEN webhook IS NULL THEN NULL ELSE 'pending' END, \
    webhook_due_ms = CASE WHEN webhook IS NULL THEN NULL ELSE ?1 END, ended_ms = ?1";

pub(super) fn find_by_key(connection: &Connection, job: &NewJob) -> Outcome<Option<AddedJob>> {
    let Some(key) = &job.idempotency_key else {
        return Ok(None);
    };
    let found: Option<(String, String)> = sql::first(
        connection,
        "SELECT id, fingerprint FROM jobs WHERE owner = ?1 AND idempotency_key = ?2",
        [job.owner.as_deref().unwrap_or(""), key],
        |row| row.try_into(),
    )?;
    match found {
        None => Ok(None),
        Some((_, fingerprint)) if fingerprint != job.fingerprint => {
            Ok(Some(AddedJob::OtherRequest))
        }
        Some((id, _)) => get(connection, &id).map(|known| Some(AddedJob::Known(known))),
    }
}

pub(super) fn add(connection: &Connection, job: &NewJob, now_ms: u64) -> Outcome<JobStatus> {
    let id = Uuid::new_v4().to_string();
    sql::run(
        connection,
        "INSERT INTO jobs (id, owner, idempotency_key, fingerprint, state, priority, created_ms, not_before_ms,
         deadline_ms, attempts, max_attempts, claim, path, headers, body, told, webhook, webhook_attempts, error)
         VALUES (?1, ?2, ?3, ?4, 'waiting', ?5, ?6, ?7, ?8, 0, ?9, 0, ?10, ?11, ?12, 0, ?13, 0, ?14)",
        params![
            id,
            job.owner.as_deref().unwrap_or(""),
            job.idempotency_key,
            job.fingerprint,
            rank(job.priority),
            signed(now_ms),
            signed(job.not_before_ms),
            signed(job.deadline_ms),
            job.max_attempts,
            job.request.path,
            Json(&job.request.headers),
            job.request.body,
            job.webhook,
            job.reason.as_ref().map(Json),
        ],
    )?;
    get(connection, &id)
}

/// # Errors
/// `NotFound` for an unknown id.
pub(super) fn get(connection: &Connection, id: &str) -> Outcome<JobStatus> {
    let select = format!("SELECT {COLUMNS} FROM jobs WHERE id = ?1");
    let found = sql::first(connection, &select, [id], status)?;
    Ok(found.ok_or_else(|| no_job(id))?)
}

pub(super) fn outcome(connection: &Connection, id: &str) -> Outcome<JobOutcome> {
    let select = format!("SELECT {COLUMNS}, answer_headers, answer FROM jobs WHERE id = ?1");
    let found = sql::first(connection, &select, [id], |row| {
        let status = status(row)?;
        let body: Option<Vec<u8>> = row.get("answer")?;
        // What cannot be read holds nothing else up.
        let headers: Option<Json<_>> = row.get("answer_headers").ok().flatten();
        Ok(JobOutcome {
            answer: status.status.zip(body).map(|(status, body)| JobAnswer {
                status,
                headers: headers.map(|Json(headers)| headers).unwrap_or_default(),
                body,
            }),
            error: error(row)?,
            status,
        })
    })?;
    Ok(found.ok_or_else(|| no_job(id))?)
}

pub(super) fn claim(connection: &Connection, seq: i64) -> Outcome<Claim> {
    sql::one(
        connection,
        "UPDATE jobs SET state = 'running', attempts = attempts + 1, claim = claim + 1 WHERE seq = ?1
         RETURNING id, claim, attempts, max_attempts, deadline_ms, path, headers, body, owner",
        [seq],
        |row| {
            Ok(Claim {
                id: row.get(0)?,
                number: row.get(1)?,
                attempts: row.get(2)?,
                max_attempts: row.get(3)?,
                deadline_ms: row.get(4)?,
                owner: Some(row.get(8)?).filter(|owner: &String| !owner.is_empty()),
                request: JobRequest {
                    path: row.get(5)?,
                    headers: row.get(6).map(|Json(headers)| headers).unwrap_or_default(),
                    body: row.get(7)?,
                },
            })
        },
    )
}

pub(super) fn end(
    connection: &Connection,
    id: &str,
    claim: i64,
    ending: &Ending,
    now_ms: u64,
) -> Outcome<bool> {
    let answer = ending.answer.as_ref();
    let ended = sql::run(
        connection,
        &format!(
            "UPDATE jobs SET {ENDS}, state = ?2, status = ?3, answer_headers = ?4, answer = ?5, error = ?6
             WHERE id = ?7 AND state = 'running' AND claim = ?8"
        ),
        params![
            signed(now_ms),
            Word(ending.state),
            answer.map(|answer| answer.status),
            answer.map(|answer| Json(&answer.headers)),
            answer.map(|answer| &answer.body),
            ending.error.as_ref().map(Json),
            id,
            claim,
        ],
    )?;
    Ok(ended > 0)
}

/// A canceled request counts as fetched.
pub(super) fn cancel(connection: &Connection, id: &str, now_ms: u64) -> Outcome<bool> {
    let error = Error::new(Code::Cancelled, "it was canceled");
    let canceled = sql::run(
        connection,
        &format!(
            "UPDATE jobs SET {ENDS}, state = 'cancelled', error = ?2, told = 1
             WHERE id = ?3 AND state IN ('waiting', 'running')"
        ),
        params![signed(now_ms), Json(error), id],
    )?;
    Ok(canceled > 0)
}

/// Shortens waits that are longer than any pause: the clock was set back meanwhile.
fn cap_waits(connection: &Connection, now_ms: u64) -> Outcome<()> {
    let longest = u64::try_from(LONGEST_PAUSE.as_millis()).unwrap_or(u64::MAX);
    let until = signed(now_ms.saturating_add(longest));
    for update in [
        "UPDATE jobs SET not_before_ms = ?1 WHERE state = 'waiting' AND not_before_ms > ?1",
        "UPDATE jobs SET webhook_due_ms = ?1 WHERE webhook_due_ms > ?1",
    ] {
        sql::run(connection, update, [until])?;
    }
    Ok(())
}

pub(super) fn recover(connection: &Connection, now_ms: u64) -> Outcome<()> {
    cap_waits(connection, now_ms)?;
    let running = "SELECT id, attempts, max_attempts FROM jobs WHERE state = 'running'";
    let running: Vec<(String, u32, u32)> = sql::all(connection, running, [], |row| row.try_into())?;
    for (id, attempts, most) in running {
        let why = Error::new(
            Code::WorkerCrashed,
            "Tierbar ended while it was being answered",
        );
        if attempts >= most {
            end_unanswered(connection, &id, JobState::Failed, why, now_ms)?;
            continue;
        }
        // A request that kills the host is not retried at once.
        let pause = u64::try_from(retry_pause(&id, attempts).as_millis()).unwrap_or(u64::MAX);
        sql::run(
            connection,
            "UPDATE jobs SET state = 'waiting', not_before_ms = ?1, error = ?2 WHERE id = ?3",
            params![signed(now_ms.saturating_add(pause)), Json(why), id],
        )?;
    }
    Ok(())
}

pub(super) fn expire(connection: &Connection, now_ms: u64) -> Outcome<Vec<String>> {
    let late: Vec<(String, Option<Error>)> = sql::all(
        connection,
        "SELECT id, error FROM jobs WHERE state = 'waiting' AND deadline_ms <= ?1 LIMIT ?2",
        params![signed(now_ms), AT_ONCE],
        |row| Ok((row.get("id")?, error(row)?)),
    )?;
    let mut ended = Vec::new();
    for (id, last) in late {
        let why = expired_error(last.as_ref());
        end_unanswered(connection, &id, JobState::Expired, why, now_ms)?;
        ended.push(id);
    }
    Ok(ended)
}

fn end_unanswered(
    connection: &Connection,
    id: &str,
    state: JobState,
    why: Error,
    now_ms: u64,
) -> Outcome<usize> {
    sql::run(
        connection,
        &format!("UPDATE jobs SET {ENDS}, state = ?2, error = ?3 WHERE id = ?4"),
        params![signed(now_ms), Word(state), Json(why), id],
    )
}

pub(super) fn status(row: &Row) -> rusqlite::Result<JobStatus> {
    Ok(JobStatus {
        id: row.get(0)?,
        state: row.get::<_, Word<_>>(1)?.0,
        priority: match row.get::<_, i64>(2)? {
            i64::MIN..=-1 => Priority::Low,
            0 => Priority::Normal,
            1..=i64::MAX => Priority::High,
        },
        path: row.get(3)?,
        created_ms: row.get(4)?,
        not_before_ms: row.get(5)?,
        deadline_ms: row.get(6)?,
        ended_ms: row.get(7)?,
        attempts: row.get(8)?,
        max_attempts: row.get(9)?,
        status: row.get(10)?,
        reason: error(row)?.map(|error| error.message),
        webhook: row
            .get::<_, Option<Word<WebhookState>>>(12)?
            .map(|word| word.0),
    })
}

/// An error that only a newer version can read is ignored.
fn error(row: &Row) -> rusqlite::Result<Option<Error>> {
    let kept: Option<String> = row.get("error")?;
    Ok(kept.and_then(|kept| serde_json::from_str(&kept).ok()))
}

fn rank(priority: Priority) -> i64 {
    match priority {
        Priority::Low => -1,
        Priority::Normal => 0,
        Priority::High => 1,
    }
}

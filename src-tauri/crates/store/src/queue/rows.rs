//! The table's rows.

use super::{AddedJob, Claim, Ending, Headers, JobAnswer, JobOutcome, JobRequest, NewJob, signed};
use crate::word::Word;
use rusqlite::{Connection, OptionalExtension, Row, params};
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
const COLUMNS: &str = "id, state, priority, path, created_ms, not_before_ms, deadline_ms, ended_ms, attempts, \
    max_attempts, status, error, webhook_state";
/// The changes of every end: the request's text is no longer needed, and its webhook is due.
const ENDS: &str = "body = x'', headers = '[]', \
    webhook_state = CASE WHEN webhook IS NULL THEN NULL ELSE 'pending' END, \
    webhook_due_ms = CASE WHEN webhook IS NULL THEN NULL ELSE ?1 END, ended_ms = ?1";

pub(super) fn find_by_key(
    connection: &Connection,
    job: &NewJob,
) -> rusqlite::Result<Option<AddedJob>> {
    let Some(key) = &job.idempotency_key else {
        return Ok(None);
    };
    let found: Option<(String, String)> = connection
        .prepare_cached(
            "SELECT id, fingerprint FROM jobs WHERE owner = ?1 AND idempotency_key = ?2",
        )?
        .query_row(params![job.owner.as_deref().unwrap_or(""), key], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    match found {
        None => Ok(None),
        Some((_, fingerprint)) if fingerprint != job.fingerprint => {
            Ok(Some(AddedJob::OtherRequest))
        }
        Some((id, _)) => Ok(find(connection, &id)?.map(AddedJob::Known)),
    }
}

pub(super) fn add(
    connection: &Connection,
    job: &NewJob,
    now_ms: u64,
) -> rusqlite::Result<JobStatus> {
    let status = JobStatus {
        id: Uuid::new_v4().to_string(),
        state: JobState::Waiting,
        priority: job.priority,
        path: job.request.path.clone(),
        created_ms: now_ms,
        not_before_ms: job.not_before_ms,
        deadline_ms: job.deadline_ms,
        ended_ms: None,
        attempts: 0,
        max_attempts: job.max_attempts,
        status: None,
        reason: job.reason.as_ref().map(|why| why.message.clone()),
        webhook: None,
    };
    connection
        .prepare_cached(
            "INSERT INTO jobs (id, owner, idempotency_key, fingerprint, state, priority, created_ms, not_before_ms,
             deadline_ms, attempts, max_attempts, claim, path, headers, body, told, webhook, webhook_attempts, error)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 0, ?10, 0, ?11, ?12, ?13, 0, ?14, 0, ?15)",
        )?
        .execute(params![
            status.id,
            job.owner.as_deref().unwrap_or(""),
            job.idempotency_key,
            job.fingerprint,
            Word(JobState::Waiting),
            rank(job.priority),
            signed(now_ms),
            signed(job.not_before_ms),
            signed(job.deadline_ms),
            job.max_attempts,
            job.request.path,
            json(&job.request.headers)?,
            job.request.body,
            job.webhook,
            job.reason.as_ref().map(json).transpose()?,
        ])?;
    Ok(status)
}

pub(super) fn find(connection: &Connection, id: &str) -> rusqlite::Result<Option<JobStatus>> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM jobs WHERE id = ?1"))?
        .query_row([id], status)
        .optional()
}

pub(super) fn owner(connection: &Connection, id: &str) -> rusqlite::Result<Option<String>> {
    connection
        .prepare_cached("SELECT owner FROM jobs WHERE id = ?1")?
        .query_row([id], |row| row.get(0))
        .optional()
}

pub(super) fn outcome(connection: &Connection, id: &str) -> rusqlite::Result<Option<JobOutcome>> {
    let with = format!("SELECT {COLUMNS}, answer_headers, answer FROM jobs WHERE id = ?1");
    connection
        .prepare_cached(&with)?
        .query_row([id], |row| {
            let status = status(row)?;
            let body: Option<Vec<u8>> = row.get("answer")?;
            let headers: Option<String> = row.get("answer_headers")?;
            let answer = status.status.zip(body).map(|(status, body)| JobAnswer {
                status,
                headers: headers.as_deref().map(read_headers).unwrap_or_default(),
                body,
            });
            Ok(JobOutcome {
                answer,
                error: error(row)?,
                status,
            })
        })
        .optional()
}

pub(super) fn mark_fetched(connection: &Connection, id: &str) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE jobs SET told = 1 WHERE id = ?1 AND told = 0")?
        .execute([id])?;
    Ok(())
}

pub(super) fn whose_turn(connection: &Connection, now_ms: u64) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached(
            "SELECT seq FROM jobs WHERE state = 'waiting' AND not_before_ms <= ?1 AND deadline_ms > ?1
             ORDER BY priority DESC, seq LIMIT 1",
        )?
        .query_row([signed(now_ms)], |row| row.get(0))
        .optional()
}

pub(super) fn claim(connection: &Connection, seq: i64) -> rusqlite::Result<Claim> {
    connection
        .prepare_cached(
            "UPDATE jobs SET state = 'running', attempts = attempts + 1, claim = claim + 1 WHERE seq = ?1
             RETURNING id, claim, attempts, max_attempts, deadline_ms, path, headers, body, owner",
        )?
        .query_row([seq], |row| {
            Ok(Claim {
                id: row.get(0)?,
                number: row.get(1)?,
                attempts: row.get(2)?,
                max_attempts: row.get(3)?,
                deadline_ms: row.get::<_, i64>(4)?.unsigned_abs(),
                owner: Some(row.get(8)?).filter(|owner: &String| !owner.is_empty()),
                request: JobRequest {
                    path: row.get(5)?,
                    headers: read_headers(&row.get::<_, String>(6)?),
                    body: row.get(7)?,
                },
            })
        })
}

pub(super) fn end(
    connection: &Connection,
    id: &str,
    claim: i64,
    ending: &Ending,
    now_ms: u64,
) -> rusqlite::Result<bool> {
    let answer = ending.answer.as_ref();
    let headers = answer.map(|answer| json(&answer.headers)).transpose()?;
    let ended = connection
        .prepare_cached(&format!(
            "UPDATE jobs SET {ENDS}, state = ?2, status = ?3, answer_headers = ?4, answer = ?5, error = ?6
             WHERE id = ?7 AND state = 'running' AND claim = ?8"
        ))?
        .execute(params![
            signed(now_ms),
            Word(ending.state),
            answer.map(|answer| answer.status),
            headers,
            answer.map(|answer| &answer.body),
            ending.error.as_ref().map(json).transpose()?,
            id,
            claim,
        ])?;
    Ok(ended > 0)
}

pub(super) fn defer(
    connection: &Connection,
    id: &str,
    claim: i64,
    not_before_ms: u64,
    why: Option<&Error>,
    counts: bool,
) -> rusqlite::Result<bool> {
    let deferred = connection
        .prepare_cached(
            "UPDATE jobs SET state = 'waiting', not_before_ms = ?1, error = coalesce(?2, error), attempts = attempts - ?3
             WHERE id = ?4 AND state = 'running' AND claim = ?5",
        )?
        .execute(params![
            signed(not_before_ms),
            why.map(json).transpose()?,
            i64::from(!counts),
            id,
            claim,
        ])?;
    Ok(deferred > 0)
}

/// A canceled request counts as fetched.
pub(super) fn cancel(connection: &Connection, id: &str, now_ms: u64) -> rusqlite::Result<bool> {
    let error = Error::new(Code::Cancelled, "it was canceled");
    let canceled = connection
        .prepare_cached(&format!(
            "UPDATE jobs SET {ENDS}, state = 'cancelled', error = ?2, told = 1
             WHERE id = ?3 AND state IN ('waiting', 'running')"
        ))?
        .execute(params![signed(now_ms), json(&error)?, id])?;
    Ok(canceled > 0)
}

pub(super) fn remove(connection: &Connection, id: &str) -> rusqlite::Result<bool> {
    let removed = connection
        .prepare_cached("DELETE FROM jobs WHERE id = ?1")?
        .execute([id])?;
    Ok(removed > 0)
}

/// Waits for another attempt and for a webhook's.
pub(super) fn shift_waits(connection: &Connection, by_ms: u64) -> rusqlite::Result<()> {
    connection.execute(
        "UPDATE jobs SET not_before_ms = max(not_before_ms - ?1, 0) WHERE state = 'waiting'",
        [signed(by_ms)],
    )?;
    connection.execute(
        "UPDATE jobs SET webhook_due_ms = max(webhook_due_ms - ?1, 0) WHERE webhook_due_ms IS NOT NULL",
        [signed(by_ms)],
    )?;
    Ok(())
}

/// Shortens waits that are longer than any pause: the clock was set back meanwhile.
fn cap_waits(connection: &Connection, now_ms: u64) -> rusqlite::Result<()> {
    let longest = u64::try_from(LONGEST_PAUSE.as_millis()).unwrap_or(u64::MAX);
    let until = signed(now_ms.saturating_add(longest));
    connection.execute(
        "UPDATE jobs SET not_before_ms = ?1 WHERE state = 'waiting' AND not_before_ms > ?1",
        [until],
    )?;
    connection.execute(
        "UPDATE jobs SET webhook_due_ms = ?1 WHERE webhook_due_ms > ?1",
        [until],
    )?;
    Ok(())
}

pub(super) fn recover(connection: &Connection, now_ms: u64) -> rusqlite::Result<()> {
    cap_waits(connection, now_ms)?;
    let running: Vec<(String, u32, u32)> = connection
        .prepare("SELECT id, attempts, max_attempts FROM jobs WHERE state = 'running'")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<Result<_, _>>()?;
    for (id, attempts, most) in running {
        let why = Error::new(
            Code::WorkerCrashed,
            "Tierbar ended while it was being answered",
        );
        if attempts >= most {
            connection.execute(
                &format!("UPDATE jobs SET {ENDS}, state = 'failed', error = ?2 WHERE id = ?3"),
                params![signed(now_ms), json(&why)?, id],
            )?;
            continue;
        }
        // A request that kills the host is not retried at once.
        let pause = u64::try_from(retry_pause(&id, attempts).as_millis()).unwrap_or(u64::MAX);
        connection.execute(
            "UPDATE jobs SET state = 'waiting', not_before_ms = ?1, error = ?2 WHERE id = ?3",
            params![signed(now_ms.saturating_add(pause)), json(&why)?, id],
        )?;
    }
    Ok(())
}

pub(super) fn expire(connection: &Connection, now_ms: u64) -> rusqlite::Result<Vec<String>> {
    let late: Vec<(String, Option<Error>)> = connection
        .prepare_cached(
            "SELECT id, error FROM jobs WHERE state = 'waiting' AND deadline_ms <= ?1 LIMIT ?2",
        )?
        .query_map(params![signed(now_ms), AT_ONCE], |row| {
            Ok((row.get("id")?, error(row)?))
        })?
        .collect::<Result<_, _>>()?;
    let mut ended = Vec::new();
    for (id, last) in late {
        connection
            .prepare_cached(&format!(
                "UPDATE jobs SET {ENDS}, state = 'expired', error = ?2 WHERE id = ?3"
            ))?
            .execute(params![
                signed(now_ms),
                json(&expired_error(last.as_ref()))?,
                id
            ])?;
        ended.push(id);
    }
    Ok(ended)
}

pub(super) fn list(
    connection: &Connection,
    state: Option<JobState>,
    limit: u32,
) -> rusqlite::Result<Vec<JobStatus>> {
    match state {
        None => connection
            .prepare_cached(&format!(
                "SELECT {COLUMNS} FROM jobs ORDER BY seq DESC LIMIT ?1"
            ))?
            .query_map([limit], status)?
            .collect(),
        Some(state) => connection
            .prepare_cached(&format!(
                "SELECT {COLUMNS} FROM jobs WHERE state = ?1 ORDER BY seq DESC LIMIT ?2"
            ))?
            .query_map(params![Word(state), limit], status)?
            .collect(),
    }
}

pub(super) fn counts(connection: &Connection) -> rusqlite::Result<Vec<(JobState, u64)>> {
    connection
        .prepare_cached("SELECT state, count(*) FROM jobs GROUP BY state")?
        .query_map([], |row| {
            Ok((
                row.get::<_, Word<_>>(0)?.0,
                row.get::<_, i64>(1)?.unsigned_abs(),
            ))
        })?
        .collect()
}

fn status(row: &Row) -> rusqlite::Result<JobStatus> {
    let ms = |at: usize| row.get::<_, i64>(at).map(i64::unsigned_abs);
    Ok(JobStatus {
        id: row.get(0)?,
        state: row.get::<_, Word<_>>(1)?.0,
        priority: match row.get::<_, i64>(2)? {
            i64::MIN..=-1 => Priority::Low,
            0 => Priority::Normal,
            1..=i64::MAX => Priority::High,
        },
        path: row.get(3)?,
        created_ms: ms(4)?,
        not_before_ms: ms(5)?,
        deadline_ms: ms(6)?,
        ended_ms: row.get::<_, Option<i64>>(7)?.map(i64::unsigned_abs),
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

fn read_headers(text: &str) -> Headers {
    serde_json::from_str(text).unwrap_or_default()
}

fn json(value: &impl serde::Serialize) -> rusqlite::Result<String> {
    serde_json::to_string(value)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

fn rank(priority: Priority) -> i64 {
    match priority {
        Priority::Low => -1,
        Priority::Normal => 0,
        Priority::High => 1,
    }
}

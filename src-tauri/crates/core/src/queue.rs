//! Queued requests: their status, and what follows from an attempt. Times are milliseconds since 1970.

use crate::{Code, Error, download::Priority};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use utoipa::ToSchema;

crate::words! {
    /// The state of a queued request.
    #[derive(
        Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
    )]
    pub enum JobState {
        /// Waiting for its turn or its next attempt.
        Waiting = "waiting",
        Running = "running",
        /// Answered.
        Done = "done",
        /// Refused, or tried too often.
        Failed = "failed",
        /// Canceled by its client or the user.
        Cancelled = "cancelled",
        /// Not answered by its deadline.
        Expired = "expired",
    }
}

impl JobState {
    pub fn has_ended(self) -> bool {
        !matches!(self, Self::Waiting | Self::Running)
    }
}

/// The state of a queued request's webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WebhookState {
    /// To be sent.
    Pending,
    Delivered,
    /// Its server has not accepted it for a day.
    GivenUp,
}

/// A queued request without its text and answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JobStatus {
    pub id: String,
    pub state: JobState,
    pub priority: Priority,
    /// The path that it is sent to, such as `/v1/chat/completions`.
    pub path: String,
    pub created_ms: u64,
    /// It is not tried before this time.
    pub not_before_ms: u64,
    pub deadline_ms: u64,
    pub ended_ms: Option<u64>,
    pub attempts: u32,
    pub max_attempts: u32,
    /// The answer's status, once there is one.
    pub status: Option<u16>,
    /// Why it waits or failed, in one sentence.
    pub reason: Option<String>,
    /// `null` without a webhook.
    pub webhook: Option<WebhookState>,
}

/// How an attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setback {
    /// A retry would fail the same way.
    Final,
    /// A retry may succeed.
    Passing,
    /// Nothing was sent, and a retry may succeed: the attempt does not count.
    NotTried,
}

/// Returns what an error means to a request that can wait.
///
/// What exceeds the budget is final: waiting does not change the configuration.
pub fn setback(code: Code) -> Setback {
    match code {
        Code::Paused | Code::ShuttingDown => Setback::NotTried,
        Code::Overloaded
        | Code::TierFailed
        | Code::TierStopped
        | Code::WorkerCrashed
        | Code::WorkerTimeout
        | Code::Unreachable => Setback::Passing,
        _ => Setback::Final,
    }
}

/// The same for the status of another server, which has none of our codes. By their documentation, a cloud's 500 is as
/// transient as its 503; 529 is Anthropic's "overloaded".
pub fn setback_of_status(status: u16) -> Setback {
    match status {
        408 | 425 | 429 | 500 | 502 | 503 | 504 | 529 => Setback::Passing,
        _ => Setback::Final,
    }
}

/// An attempt that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt<'a> {
    /// The request's id: pauses differ between requests, so that they do not retry all at once.
    pub id: &'a str,
    /// Attempts, including this one.
    pub attempts: u32,
    pub max_attempts: u32,
    pub deadline_ms: u64,
    /// How long the server asked to wait.
    pub retry_after: Option<Duration>,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextStep {
    Ends(JobState),
    /// Another attempt, from this time on.
    Again(u64),
}

pub fn next_step(attempt: Attempt<'_>, setback: Setback, now_ms: u64) -> NextStep {
    let pause = match setback {
        Setback::Final => return NextStep::Ends(JobState::Failed),
        Setback::Passing if attempt.attempts >= attempt.max_attempts => {
            return NextStep::Ends(JobState::Failed);
        }
        Setback::Passing => retry_pause(attempt.id, attempt.attempts),
        Setback::NotTried => FIRST_PAUSE,
    };
    let retry_after = attempt.retry_after.unwrap_or_default();
    let pause = pause.max(retry_after.min(LONGEST_RETRY_AFTER));
    let at = now_ms.saturating_add(millis(pause));
    if at >= attempt.deadline_ms {
        return NextStep::Ends(JobState::Expired);
    }
    NextStep::Again(at)
}

/// Returns when to try a request that was just refused.
pub fn first_retry_at(retry_after: Option<Duration>, now_ms: u64) -> u64 {
    let pause = retry_after.unwrap_or_default();
    now_ms.saturating_add(millis(pause.clamp(FIRST_PAUSE, LONGEST_RETRY_AFTER)))
}

const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause that no server asked for, nearly.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// A longer wait than this is cut.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(3600);

/// Returns the pause after this many attempts: a second, doubled each time up to five minutes, plus or minus up to a
/// quarter.
pub fn retry_pause(id: &str, attempts: u32) -> Duration {
    let doubled = attempts.saturating_sub(1).min(16);
    let plain = FIRST_PAUSE.saturating_mul(1 << doubled).min(LONGEST_PAUSE);
    // FNV-1a: the same for the same attempt, spread among requests.
    let bytes = id.bytes().chain(attempts.to_le_bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let percent = 75 + u32::try_from(hash % 51).unwrap_or_default();
    plain * percent / 100
}

/// Returns when to send a webhook again that was not accepted; `None` to give up.
pub fn next_delivery(id: &str, attempts: u32, ended_ms: u64, now_ms: u64) -> Option<u64> {
    let at = now_ms.saturating_add(millis(retry_pause(id, attempts)));
    (at < ended_ms.saturating_add(millis(DELIVERING))).then_some(at)
}

const DELIVERING: Duration = Duration::from_secs(24 * 3600);

/// Returns the error of an expired request, with its last failure.
pub fn expired_error(last: Option<&Error>) -> Error {
    let message = "it was not answered by its deadline";
    match last {
        Some(last) => Error {
            message: format!("{message}; the last attempt: {}", last.message),
            ..last.clone()
        },
        None => Error::new(
            Code::WorkerTimeout,
            format!("{message}: it was never attempted"),
        ),
    }
}

/// Returns a length in milliseconds.
pub fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(attempts: u32) -> Attempt<'static> {
        Attempt {
            id: "a",
            attempts,
            max_attempts: 5,
            deadline_ms: 1_000_000,
            retry_after: None,
        }
    }

    #[test]
    fn a_state_is_named_as_on_the_wire_and_only_the_first_two_go_on() {
        for (index, state) in JobState::ALL.into_iter().enumerate() {
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
            assert_eq!(state.has_ended(), index > 1, "{state:?}");
        }
    }

    #[test]
    fn pauses_double_up_to_five_minutes_and_have_jitter() {
        for attempts in 1..400 {
            let plain = (1_u64 << (attempts - 1).min(16)).min(300);
            let got = retry_pause("request", attempts).as_secs_f64();
            let (least, most) = (plain as f64 * 0.75, plain as f64 * 1.25);
            assert!((least..=most).contains(&got), "{attempts}: {got}");
            assert_eq!(
                retry_pause("request", attempts),
                retry_pause("request", attempts)
            );
        }
        let ids: Vec<_> = (0..100).map(|n| format!("request {n}")).collect();
        let mut pauses: Vec<_> = ids.iter().map(|id| retry_pause(id, 9)).collect();
        pauses.sort();
        pauses.dedup();
        assert!(pauses.len() > 20, "{pauses:?}");
    }

    #[test]
    fn only_transient_failures_are_retried_up_to_a_limit() {
        let failed = NextStep::Ends(JobState::Failed);
        assert_eq!(next_step(attempt(1), Setback::Final, 0), failed);
        let NextStep::Again(at) = next_step(attempt(1), Setback::Passing, 10_000) else {
            panic!("it may pass");
        };
        assert!((10_750..=11_250).contains(&at), "{at}");
        assert!(matches!(
            next_step(attempt(4), Setback::Passing, 0),
            NextStep::Again(_)
        ));
        assert_eq!(next_step(attempt(5), Setback::Passing, 0), failed);
        assert_eq!(
            next_step(attempt(5), Setback::NotTried, 0),
            NextStep::Again(1000)
        );
    }

    #[test]
    fn a_retry_waits_for_the_servers_retry_after() {
        assert_eq!(first_retry_at(None, 5), 1005);
        assert_eq!(first_retry_at(Some(Duration::from_secs(60)), 5), 60_005);
        assert_eq!(first_retry_at(Some(Duration::MAX), 5), 3_600_005);
    }

    #[test]
    fn no_attempt_is_made_after_the_deadline() {
        let expired = NextStep::Ends(JobState::Expired);
        assert_eq!(next_step(attempt(1), Setback::Passing, 999_900), expired);
        let limited = Attempt {
            retry_after: Some(Duration::from_secs(60)),
            ..attempt(1)
        };
        assert_eq!(
            next_step(limited, Setback::Passing, 0),
            NextStep::Again(60_000)
        );
        assert_eq!(next_step(limited, Setback::Passing, 945_000), expired);
        let for_good = Attempt {
            retry_after: Some(Duration::MAX),
            deadline_ms: u64::MAX,
            ..attempt(1)
        };
        assert_eq!(
            next_step(for_good, Setback::Passing, 0),
            NextStep::Again(3_600_000)
        );
    }

    #[test]
    fn a_pause_uses_no_attempt_and_a_budget_error_is_final() {
        assert_eq!(setback(Code::Paused), Setback::NotTried);
        assert_eq!(setback(Code::ShuttingDown), Setback::NotTried);
        for code in [Code::Overloaded, Code::TierFailed, Code::Unreachable] {
            assert_eq!(setback(code), Setback::Passing, "{code:?}");
        }
        for code in [
            Code::BadRequest,
            Code::OverBudget,
            Code::Internal,
            Code::ModelUnknown,
        ] {
            assert_eq!(setback(code), Setback::Final, "{code:?}");
        }
        assert_eq!(setback_of_status(529), Setback::Passing);
        assert_eq!(setback_of_status(422), Setback::Final);
    }

    #[test]
    fn a_webhook_is_given_up_after_a_day() {
        let day = 24 * 3600 * 1000;
        assert!(next_delivery("a", 1, 0, 0).is_some_and(|at| at <= 1250));
        assert!(next_delivery("a", 290, 0, day - 400_000).is_some());
        let last = day - millis(retry_pause("a", 290));
        assert_eq!(next_delivery("a", 290, 0, last - 1), Some(day - 1));
        assert_eq!(next_delivery("a", 290, 0, last), None);
    }

    #[test]
    fn an_expired_request_has_its_last_error() {
        assert_eq!(expired_error(None).code, Code::WorkerTimeout);
        let last = Error::new(Code::Unreachable, "connection refused").hint("start it");
        let error = expired_error(Some(&last));
        assert_eq!((error.code, error.hint), (last.code, last.hint));
        assert!(
            error
                .message
                .ends_with("the last attempt: connection refused")
        );
    }
}

//! Whether a failed response is worth another attempt, and its reason.

use axum::{http::header, response::Response};
use std::time::Duration;
use tierbar_core::{
    Code, Error,
    queue::{Setback, setback, setback_of_status},
};
use tierbar_inference::dispatch::QueuePermission;
use tierbar_store::JobAnswer;

/// Why there is no answer, or none that counts.
pub(super) struct FailedAttempt {
    pub(super) setback: Setback,
    /// What the client gets if there will be no other.
    pub(super) answer: Option<JobAnswer>,
    /// In our words, or by its status.
    pub(super) error: Error,
    /// The server's `Retry-After`, if it is in seconds.
    pub(super) retry_after: Option<Duration>,
}

impl From<Error> for FailedAttempt {
    /// What a retry would not change.
    fn from(error: Error) -> Self {
        Self {
            setback: Setback::Final,
            answer: None,
            error,
            retry_after: None,
        }
    }
}

/// What is wrong with a response; `None`: it is an answer.
pub(super) fn find(response: &Response) -> Option<FailedAttempt> {
    let status = response.status();
    if !status.is_client_error() && !status.is_server_error() {
        return None;
    }
    let (setback, error) = match response.extensions().get::<Error>() {
        Some(own) => (setback(own.code), own.clone()),
        None => {
            let message = format!("the server returned status {status}");
            let error = Error::new(Code::Unreachable, message).detail("status", status.as_u16());
            (setback_of_status(status.as_u16()), error)
        }
    };
    Some(FailedAttempt {
        setback: match setback {
            Setback::Final if may_wait(response) => Setback::Passing,
            other => other,
        },
        retry_after: retry_after(response),
        ..error.into()
    })
}

/// Whether the response is marked as one whose request may be queued.
pub(super) fn may_wait(response: &Response) -> bool {
    response.extensions().get::<QueuePermission>().is_some()
}

fn retry_after(response: &Response) -> Option<Duration> {
    let value = response.headers().get(header::RETRY_AFTER)?;
    let seconds = value.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::{
        body::Body,
        http::StatusCode,
        response::{IntoResponse, Response},
    };
    use tierbar_http::error::Failure;

    fn setback_of(response: &Response) -> Option<Setback> {
        find(response).map(|failed| failed.setback)
    }

    #[test]
    fn transient_statuses_are_known() {
        let passing: Vec<u16> = (400..600)
            .filter(|status| {
                let mut response = Response::new(Body::empty());
                *response.status_mut() = StatusCode::from_u16(*status).unwrap();
                match setback_of(&response) {
                    Some(Setback::Passing) => true,
                    Some(Setback::Final) => false,
                    other => panic!("{status}: {other:?}"),
                }
            })
            .collect();
        assert_eq!(passing, [408, 425, 429, 500, 502, 503, 504, 529]);
        assert_eq!(setback_of(&Response::new(Body::empty())), None);
    }

    #[test]
    fn a_code_of_ours_decides_whether_a_request_may_wait() {
        for (code, expected) in [
            (Code::Paused, Setback::NotTried),
            (Code::ShuttingDown, Setback::NotTried),
            (Code::Overloaded, Setback::Passing),
            (Code::TierFailed, Setback::Passing),
            (Code::TierStopped, Setback::Passing),
            (Code::WorkerCrashed, Setback::Passing),
            (Code::WorkerTimeout, Setback::Passing),
            (Code::Unreachable, Setback::Passing),
            (Code::BadRequest, Setback::Final),
            (Code::ModelUnknown, Setback::Final),
            (Code::ContextExceeded, Setback::Final),
        ] {
            let response = Failure(Error::new(code, "why")).into_response();
            assert_eq!(setback_of(&response), Some(expected), "{code:?}");
        }
    }

    #[test]
    fn a_final_failure_passes_if_its_chain_says_so() {
        let mut response = Failure(Error::new(Code::BadRequest, "why")).into_response();
        response.extensions_mut().insert(QueuePermission);
        assert_eq!(setback_of(&response), Some(Setback::Passing));
    }
}

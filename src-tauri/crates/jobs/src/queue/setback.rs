//! Whether a failed response is worth another attempt, and its reason.

use axum::{http::header, response::Response};
use std::time::Duration;
use tierbar_core::{
    Code, Error,
    queue::{Setback, setback, setback_of_status},
};
use tierbar_inference::dispatch::QueuePermission;

/// What is wrong with a response; `None`: it is an answer.
pub(super) fn find(response: &Response) -> Option<Setback> {
    let status = response.status();
    if !status.is_client_error() && !status.is_server_error() {
        return None;
    }
    let own = response.extensions().get::<Error>();
    let plain = own.map_or_else(
        || setback_of_status(status.as_u16()),
        |error| setback(error.code),
    );
    Some(match plain {
        Setback::Final if may_wait(response) => Setback::Passing,
        other => other,
    })
}

/// Whether the response is marked as one whose request may be queued.
pub(super) fn may_wait(response: &Response) -> bool {
    response.extensions().get::<QueuePermission>().is_some()
}

/// Why it failed, in our words or by its status.
pub(super) fn error(response: &Response) -> Error {
    let own = response.extensions().get::<Error>().cloned();
    own.unwrap_or_else(|| {
        let status = response.status();
        let message = format!("the server returned status {status}");
        Error::new(Code::Unreachable, message).detail("status", status.as_u16())
    })
}

/// The server's `Retry-After`, if it is in seconds.
pub(super) fn retry_after(response: &Response) -> Option<Duration> {
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

    #[test]
    fn transient_statuses_are_known() {
        let passing: Vec<u16> = (400..600)
            .filter(|status| {
                let mut response = Response::new(Body::empty());
                *response.status_mut() = StatusCode::from_u16(*status).unwrap();
                match find(&response) {
                    Some(Setback::Passing) => true,
                    Some(Setback::Final) => false,
                    other => panic!("{status}: {other:?}"),
                }
            })
            .collect();
        assert_eq!(passing, [408, 425, 429, 500, 502, 503, 504, 529]);
        assert_eq!(find(&Response::new(Body::empty())), None);
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
            assert_eq!(find(&response), Some(expected), "{code:?}");
        }
    }

    #[test]
    fn a_final_failure_passes_if_its_chain_says_so() {
        let mut response = Failure(Error::new(Code::BadRequest, "why")).into_response();
        response.extensions_mut().insert(QueuePermission);
        assert_eq!(find(&response), Some(Setback::Passing));
    }
}

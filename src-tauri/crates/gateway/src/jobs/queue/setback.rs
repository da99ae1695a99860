//! Whether a failed response may pass, and what it says of itself.

use crate::inference::chain::MayWait;
use axum::{http::header, response::Response};
use std::time::Duration;
use tierbar_core::{
    Code, Error,
    queue::{Setback, setback, setback_of_status},
};

/// What is wrong with a response; `None`: it is an answer.
pub(super) fn of(response: &Response) -> Option<Setback> {
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

/// Whether whoever has answered says that the request may wait.
pub(super) fn may_wait(response: &Response) -> bool {
    response.extensions().get::<MayWait>().is_some()
}

/// Why it failed, in our words or by its status.
pub(super) fn error(response: &Response) -> Error {
    let own = response.extensions().get::<Error>().cloned();
    own.unwrap_or_else(|| {
        let status = response.status();
        let message = format!("who was asked answered with status {status}");
        Error::new(Code::Unreachable, message).detail("status", status.as_u16())
    })
}

/// How long its server wants to be left alone, where it says so in seconds.
pub(super) fn retry_after(response: &Response) -> Option<Duration> {
    let value = response.headers().get(header::RETRY_AFTER)?;
    let seconds = value.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

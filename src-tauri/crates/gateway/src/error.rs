//! An error as a response: the status that fits, and the body of [`Error::openai_body`].

use axum::{
    Json,
    http::{HeaderValue, Method, StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use serde_json::Value;
use tierbar_core::{Code, Error};

/// The error of every handler.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) Error);

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let Self(error) = self;
        if error.code == Code::Internal {
            tracing::error!("{error}");
        }
        let status = StatusCode::from_u16(error.code.http_status())
            .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(error.openai_body())).into_response();
        if error.code == Code::Unauthorized {
            let scheme = HeaderValue::from_static("Bearer");
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, scheme);
        }
        if let Some(seconds) = error
            .details
            .get("retry_after_seconds")
            .and_then(Value::as_u64)
        {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}

/// An error as the last event of a stream that has begun.
pub(crate) fn last_event(error: &Error) -> String {
    format!("data: {}\n\n", error.openai_body())
}

pub(crate) fn no_such_path(path: &str) -> Error {
    Error::new(Code::NotFound, format!("there is nothing at {path}"))
}

pub(crate) async fn method_not_allowed(method: Method, uri: Uri) -> Failure {
    let message = format!("{} does not take {method}", uri.path());
    Failure(Error::new(Code::MethodNotAllowed, message))
}

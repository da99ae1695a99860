//! An error as a response: the status that fits, and a body in the dialect of the path.

use crate::dialects::{anthropic, ollama};
use axum::{
    Json,
    body::Body,
    extract::Request,
    http::{HeaderValue, Method, StatusCode, Uri, header},
    middleware::Next,
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
        response.extensions_mut().insert(error.code);
        if error.code == Code::Unauthorized {
            let scheme = HeaderValue::from_static("Bearer");
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, scheme);
        }
        if let Some(seconds) = seconds_of(&error) {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, seconds.into());
        }
        // For those around, whatever the body's dialect.
        response.extensions_mut().insert(error);
        response
    }
}

/// Tells errors in the words of those who ask at this path. The outermost layer: who is refused at the door is told in them too.
pub(crate) async fn in_dialect(request: Request, next: Next) -> Response {
    let tell = if anthropic::is_path(request.uri().path()) {
        anthropic::error_body
    } else if ollama::is_path(request.uri().path()) {
        ollama::error_body
    } else {
        return next.run(request).await;
    };
    let mut response = next.run(request).await;
    if let Some(error) = response.extensions().get::<Error>() {
        let body = Body::from(tell(error).to_string());
        response.headers_mut().remove(header::CONTENT_LENGTH);
        *response.body_mut() = body;
    }
    response
}

/// Told in the body, and as `Retry-After`.
const RETRY_AFTER: &str = "retry_after_seconds";

/// The error as one that holds for so long.
pub(crate) fn for_seconds(error: Error, seconds: u64) -> Error {
    error.detail(RETRY_AFTER, seconds)
}

/// For how long it holds, if that is known.
pub(crate) fn seconds_of(error: &Error) -> Option<u64> {
    error.details.get(RETRY_AFTER).and_then(Value::as_u64)
}

/// For clients that show one text and nothing beside it.
pub(crate) fn with_advice(message: &str, error: &Error) -> String {
    match &error.hint {
        Some(hint) => format!("{message}; {hint}"),
        None => message.to_owned(),
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

//! An error as a response: its status, and a body in the form of the path.

use crate::http::headers::REQUEST_ID;
use axum::{
    Json,
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
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
        // For the layers around it, whatever the body's dialect.
        response.extensions_mut().insert(error);
        response
    }
}

/// The form of errors on a dialect's paths, written by the dialect; every other path has OpenAI's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ErrorForm {
    pub(crate) is_path: fn(&str, &HeaderMap) -> bool,
    /// Of an error and the request's id.
    pub(crate) body: fn(&Error, Option<&str>) -> Value,
}

/// Writes errors in the form of the path. The outermost layer, so that it applies to all refusals.
pub(crate) async fn write_in_form(
    State(forms): State<&'static [ErrorForm]>,
    request: Request,
    next: Next,
) -> Response {
    let (path, headers) = (request.uri().path(), request.headers());
    let form = forms.iter().find(|form| (form.is_path)(path, headers));
    let id = headers.get(&REQUEST_ID).cloned();
    let mut response = next.run(request).await;
    if let Some((form, error)) = form.zip(response.extensions().get::<Error>()) {
        let id = id.as_ref().and_then(|id| id.to_str().ok());
        let body = Body::from((form.body)(error, id).to_string());
        response.headers_mut().remove(header::CONTENT_LENGTH);
        *response.body_mut() = body;
    }
    response
}

/// Adds how long the error holds, which is also sent as `Retry-After`.
pub(crate) fn for_seconds(error: Error, seconds: u64) -> Error {
    error.detail(Error::RETRY_AFTER, seconds)
}

/// Returns how long the error holds, if known.
pub(crate) fn seconds_of(error: &Error) -> Option<u64> {
    error
        .details
        .get(Error::RETRY_AFTER)
        .and_then(Value::as_u64)
}

/// Joins message and hint, for clients that show only one text.
pub(crate) fn with_advice(message: &str, error: &Error) -> String {
    match &error.hint {
        Some(hint) => format!("{message}; {hint}"),
        None => message.to_owned(),
    }
}

/// Returns an error as the last event of a stream.
pub(crate) fn last_event(error: &Error) -> String {
    format!("data: {}\n\n", error.openai_body())
}

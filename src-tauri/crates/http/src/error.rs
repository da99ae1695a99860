//! An error as a response: its status, and a body in the form of the path.

use axum::{
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use serde_json::Value;
use tierbar_core::Error;
use tierbar_inference::{headers::REQUEST_ID, response};

/// The error of every handler.
#[derive(Debug)]
pub struct Failure(pub Error);

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        response::failed(self.0).map(Body::new)
    }
}

/// The form of errors on a dialect's paths, written by the dialect; every other path has OpenAI's.
#[derive(Debug, Clone, Copy)]
pub struct ErrorForm {
    pub is_path: fn(&str, &HeaderMap) -> bool,
    /// Of an error and the request's id.
    pub body: fn(&Error, Option<&str>) -> Value,
}

/// Writes errors in the form of the path. The outermost layer, so that it applies to all refusals.
pub async fn write_in_form(
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

//! The HTTP response to a request for inference.

use crate::error::seconds_of;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use std::convert::Infallible;
use tierbar_core::{Code, Error};

/// The bytes of a response, whole or as they arrive.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;
pub type Response = http::Response<Body>;

/// Returns a body of complete bytes.
pub fn whole(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).boxed_unsync()
}

/// Puts a response together.
#[must_use]
pub fn new(status: StatusCode, headers: HeaderMap, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// Returns an error as a response, in OpenAI's form. The error and its code are extensions of it.
#[must_use]
pub fn failed(error: Error) -> Response {
    if error.code == Code::Internal {
        tracing::error!("{error}");
    }
    let status =
        StatusCode::from_u16(error.code.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut headers = HeaderMap::new();
    let json = HeaderValue::from_static("application/json");
    headers.insert(header::CONTENT_TYPE, json);
    if error.code == Code::Unauthorized {
        let scheme = HeaderValue::from_static("Bearer");
        headers.insert(header::WWW_AUTHENTICATE, scheme);
    }
    if let Some(seconds) = seconds_of(&error) {
        headers.insert(header::RETRY_AFTER, seconds.into());
    }
    let mut response = new(status, headers, whole(error.openai_body().to_string()));
    response.extensions_mut().insert(error.code);
    // For the layers around it, whatever the body's dialect.
    response.extensions_mut().insert(error);
    response
}

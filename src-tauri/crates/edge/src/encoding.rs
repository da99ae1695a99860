//! Bodies that are compressed, which no route reads.

use axum::{
    body::Body,
    http::{HeaderValue, Request, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use tierbar_core::{Code, Error};
use tierbar_http::error::Failure;

/// Refuses them by their name, before their bytes are taken for JSON that is none.
pub async fn refuse_compressed(request: Request<Body>, next: Next) -> Response {
    let encoding = request.headers().get(header::CONTENT_ENCODING);
    let encoding = encoding.map_or(&b""[..], HeaderValue::as_bytes);
    if encoding.is_empty() || encoding.eq_ignore_ascii_case(b"identity") {
        return next.run(request).await;
    }
    let encoding = String::from_utf8_lossy(encoding);
    let message = format!("the body has the content-encoding {encoding:.40}, which is not read");
    let error = Error::new(Code::UnsupportedMediaType, message);
    Failure(error.hint("send it as it is, without a content-encoding")).into_response()
}

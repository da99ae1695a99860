//! The HTTP response to a request for inference.

use crate::error::seconds_of;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use http_body::{Frame, SizeHint};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
    vec,
};
use tierbar_core::{Code, Error};

/// The bytes of a response, whole or as they arrive.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;
pub type Response = http::Response<Body>;

/// Returns a body of complete bytes.
pub fn whole(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).boxed_unsync()
}

/// Returns the same of bytes in pieces, none of which is copied.
pub fn pieces(pieces: Vec<Bytes>) -> Body {
    Pieces(pieces.into_iter()).boxed_unsync()
}

struct Pieces(vec::IntoIter<Bytes>);

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.next().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_slice().is_empty()
    }

    /// A client gets the answer's length, as of one piece.
    fn size_hint(&self) -> SizeHint {
        let lengths = self.0.as_slice().iter().map(|piece| piece.len() as u64);
        SizeHint::with_exact(lengths.sum())
    }
}

/// Puts a response together.
pub fn new(status: StatusCode, headers: HeaderMap, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// Returns an error as a response, in OpenAI's form. The error and its code are extensions of it.
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

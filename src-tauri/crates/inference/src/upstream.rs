//! An answer that is still arriving, and the connection that it arrives on. Dropping it closes the connection.

use bytes::Bytes;
use futures_util::{FutureExt, future::poll_fn};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper::{
    HeaderMap, Request, Response, StatusCode,
    body::{Body as _, Incoming},
    client::conn::http1,
    header::{self, HeaderValue},
    http::response::Parts,
};
use hyper_util::rt::TokioIo;
use std::{fmt, future::Future, io, pin::Pin, task::Poll};
use tierbar_core::Error;
use tokio::io::{AsyncRead, AsyncWrite};

type Driver = Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>;

/// The connection broke, or the answer is not HTTP. The tier's lease knows why its worker ended.
#[derive(Debug)]
pub struct ConnectionFailure(String);

impl ConnectionFailure {
    /// An end before the answer's own.
    pub fn early() -> Self {
        Self("ended its answer early".to_owned())
    }
}

impl fmt::Display for ConnectionFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A sentence's end, such as `cannot be reached (…)`.
impl From<String> for ConnectionFailure {
    fn from(what: String) -> Self {
        Self(what)
    }
}

impl From<io::Error> for ConnectionFailure {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<hyper::Error> for ConnectionFailure {
    fn from(error: hyper::Error) -> Self {
        Self(error.to_string())
    }
}

/// An answer whose body is still arriving.
pub struct Upstream {
    pub head: Parts,
    body: UnsyncBoxBody<Bytes, ConnectionFailure>,
    /// Moves the bytes; `None` once the connection has ended, or if another task drives it.
    driver: Option<Driver>,
    /// A refusal of ours: no server got the request.
    pub is_ours: bool,
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream")
            .field("head", &self.head)
            .finish_non_exhaustive()
    }
}

impl Upstream {
    /// An answer whose connection another task drives.
    pub fn new(head: Parts, body: UnsyncBoxBody<Bytes, ConnectionFailure>) -> Self {
        Self {
            head,
            body,
            driver: None,
            is_ours: false,
        }
    }

    /// A refusal in the server's place, of a request that it would not understand.
    pub fn refusing(error: &Error) -> Self {
        let body = Full::from(error.openai_body().to_string());
        let (mut head, body) = Response::new(body).into_parts();
        head.status = StatusCode::from_u16(error.code.http_status())
            .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let kind = HeaderValue::from_static("application/json");
        head.headers.insert(header::CONTENT_TYPE, kind);
        let body = body.map_err(|never| match never {});
        Self {
            is_ours: true,
            ..Self::new(head, body.boxed_unsync())
        }
    }

    /// Posts the request over a connection of its own, and waits for the head of the answer.
    ///
    /// # Errors
    /// If the connection breaks before the head is there.
    pub async fn over(
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        path: &'static str,
        json: Bytes,
    ) -> Result<Self, ConnectionFailure> {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let mut driver: Option<Driver> = Some(Box::pin(connection));
        let request = Request::post(path)
            .header(header::HOST, "localhost")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(json))
            .map_err(|error| ConnectionFailure(error.to_string()))?;
        let mut sending = Box::pin(sender.send_request(request));
        let response: Response<Incoming> = poll_fn(|context| {
            drive(&mut driver, context);
            sending.poll_unpin(context)
        })
        .await?;
        drop(sending);
        let (head, body) = response.into_parts();
        let body = body.map_err(ConnectionFailure::from).boxed_unsync();
        Ok(Self {
            driver,
            ..Self::new(head, body)
        })
    }

    /// For a stream that may last: headers are parts of the buffer that they were read into, and keep it.
    pub(crate) fn without_head(mut self) -> Self {
        self.head.headers = HeaderMap::new();
        self.head.extensions.clear();
        self
    }

    pub(crate) fn is_event_stream(&self) -> bool {
        is_event_stream(&self.head.headers)
    }

    pub fn is_json(&self) -> bool {
        is_content_type(&self.head.headers, "application/json")
    }

    /// The next bytes of the body; `None` at its proper end.
    ///
    /// # Errors
    /// If the connection breaks before the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ConnectionFailure> {
        loop {
            let frame = poll_fn(|context| {
                drive(&mut self.driver, context);
                Pin::new(&mut self.body).poll_frame(context)
            })
            .await;
            match frame {
                None => return Ok(None),
                Some(frame) => {
                    if let Ok(data) = frame?.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }

    /// The rest of the body, which can be read again.
    ///
    /// # Errors
    /// As [`Upstream::whole`].
    pub async fn peek(&mut self, limit: usize) -> Result<Bytes, ConnectionFailure> {
        let bytes = Bytes::from(self.whole(limit).await?);
        self.body = Full::new(bytes.clone())
            .map_err(|never| match never {})
            .boxed_unsync();
        Ok(bytes)
    }

    /// The rest of the body.
    ///
    /// # Errors
    /// As [`Upstream::next`], or beyond `limit` bytes.
    pub async fn whole(&mut self, limit: usize) -> Result<Vec<u8>, ConnectionFailure> {
        let mut bytes = Vec::new();
        while let Some(data) = self.next().await? {
            if bytes.len() + data.len() > limit {
                return Err(ConnectionFailure(format!(
                    "the answer is larger than {} MiB",
                    limit >> 20
                )));
            }
            bytes.extend_from_slice(&data);
        }
        Ok(bytes)
    }
}

pub(crate) fn is_event_stream(headers: &HeaderMap) -> bool {
    is_content_type(headers, "text/event-stream")
}

fn is_content_type(headers: &HeaderMap, wanted: &str) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with(wanted))
}

/// What ends the connection reaches the request or the body as an error of its own.
fn drive(driver: &mut Option<Driver>, context: &mut std::task::Context<'_>) {
    if let Some(running) = driver
        && let Poll::Ready(_) = running.poll_unpin(context)
    {
        *driver = None;
    }
}

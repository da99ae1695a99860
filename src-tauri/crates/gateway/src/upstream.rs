//! One request to a worker, over a connection of its own. Whoever drops it closes the connection at that moment,
//! which is how the worker learns that nobody waits for the answer any more.

use axum::body::{Body, Bytes};
use futures_util::{FutureExt, future::poll_fn};
use hyper::{
    Request, Response, body::Body as _, body::Incoming, client::conn::http1, header,
    http::response::Parts,
};
use hyper_util::rt::TokioIo;
use std::{fmt, future::Future, io, pin::Pin, task::Poll};
use tierbar_core::lease::Endpoint;
use tokio::net::UnixStream;

type Driver = Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>;

/// The connection broke or the answer is not HTTP. The worker's owner knows why.
#[derive(Debug)]
pub(crate) struct Broken(String);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<hyper::Error> for Broken {
    fn from(error: hyper::Error) -> Self {
        Self(error.to_string())
    }
}

/// An answer whose body is still arriving.
pub(crate) struct Upstream {
    pub(crate) head: Parts,
    body: Incoming,
    /// Moves the bytes; `None` once the connection has ended.
    driver: Option<Driver>,
}

impl Upstream {
    /// Posts `json` and waits for the head of the answer.
    ///
    /// # Errors
    /// If the connection cannot be made or breaks before the head is there.
    pub(crate) async fn post(
        endpoint: &Endpoint,
        path: &'static str,
        json: Vec<u8>,
    ) -> Result<Self, Broken> {
        let Endpoint::Unix(socket) = endpoint;
        let stream = TokioIo::new(UnixStream::connect(socket).await?);
        let (mut sender, connection) = http1::handshake(stream).await?;
        let mut driver: Option<Driver> = Some(Box::pin(connection));
        let request = Request::post(path)
            .header(header::HOST, "localhost")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(json))
            .map_err(|error| Broken(error.to_string()))?;
        let mut sending = Box::pin(sender.send_request(request));
        let response: Response<Incoming> = poll_fn(|context| {
            drive(&mut driver, context);
            sending.poll_unpin(context)
        })
        .await?;
        drop(sending);
        let (head, body) = response.into_parts();
        Ok(Self { head, body, driver })
    }

    pub(crate) fn is_event_stream(&self) -> bool {
        let kind = self
            .head
            .headers
            .get(header::CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok());
        kind.is_some_and(|kind| kind.starts_with("text/event-stream"))
    }

    /// The next bytes of the body; `None` at its proper end.
    ///
    /// # Errors
    /// If the connection breaks before the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Broken> {
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

    /// The rest of the body.
    ///
    /// # Errors
    /// As [`Upstream::next`], or beyond `limit` bytes.
    pub(crate) async fn whole(&mut self, limit: usize) -> Result<Vec<u8>, Broken> {
        let mut bytes = Vec::new();
        while let Some(data) = self.next().await? {
            if bytes.len() + data.len() > limit {
                return Err(Broken(format!(
                    "the answer is larger than {} MiB",
                    limit >> 20
                )));
            }
            bytes.extend_from_slice(&data);
        }
        Ok(bytes)
    }
}

/// What ends the connection reaches the request or the body as an error of its own.
fn drive(driver: &mut Option<Driver>, context: &mut std::task::Context<'_>) {
    if let Some(running) = driver
        && let Poll::Ready(_) = running.poll_unpin(context)
    {
        *driver = None;
    }
}

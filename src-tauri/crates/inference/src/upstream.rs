//! An answer that is still arriving, and the connection that it arrives on. Dropping it closes the connection.

use crate::{held::Share, response};
use bytes::Bytes;
use futures_util::{FutureExt, future::poll_fn};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper::{
    HeaderMap, Request, Response,
    body::{Body as _, Incoming},
    client::conn::http1,
    header::{self, HeaderValue},
    http::response::Parts,
};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::{fmt, future::Future, io, pin::Pin, task::Poll};
use tierbar_core::{Error, own_lack};
use tierbar_fetch::RemoteFailure;
use tokio::io::{AsyncRead, AsyncWrite};

/// Of an answer, in bytes. The longest that a context can hold is a fraction of it.
pub(crate) const ANSWER_LIMIT: usize = 64 << 20;
/// Of a refusal, in bytes: longer than any message.
const LONGEST_REFUSAL: usize = 64 << 10;
const JSON: HeaderValue = HeaderValue::from_static("application/json");

type Driver = Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>;

/// Why an answer did not arrive.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionFailure {
    /// The connection broke, or the answer is not HTTP. The tier's lease knows why its worker ended.
    #[error("{0}")]
    Broken(String),
    /// There is no room for it here, or something else is lacking, which is not the server's fault.
    #[error("{}", .0.message)]
    NoRoom(Error),
}

impl ConnectionFailure {
    /// An end before the answer's own.
    pub fn early() -> Self {
        Self::Broken("ended its answer early".to_owned())
    }

    fn of(error: &(dyn std::error::Error + 'static)) -> Self {
        own_lack(error).map_or_else(|| Self::Broken(error.to_string()), Self::NoRoom)
    }
}

/// A sentence's end, such as `cannot be reached (…)`.
impl From<String> for ConnectionFailure {
    fn from(what: String) -> Self {
        Self::Broken(what)
    }
}

impl From<io::Error> for ConnectionFailure {
    fn from(error: io::Error) -> Self {
        Self::of(&error)
    }
}

impl From<RemoteFailure> for ConnectionFailure {
    fn from(failure: RemoteFailure) -> Self {
        match failure {
            RemoteFailure::Server(what) => Self::Broken(what),
            RemoteFailure::Lack(lack) => Self::NoRoom(lack),
        }
    }
}

impl From<hyper::Error> for ConnectionFailure {
    fn from(error: hyper::Error) -> Self {
        Self::of(&error)
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
        let (head, body) = response::failed(error.clone()).into_parts();
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
            .map_err(|error| ConnectionFailure::Broken(error.to_string()))?;
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
                None => {
                    // Some streams may not be polled behind their end.
                    self.body = body_of(Bytes::new());
                    return Ok(None);
                }
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
        let bytes = self.whole(limit).await?;
        self.body = body_of(bytes.clone());
        Ok(bytes)
    }

    /// The rest of the body. A refusal that is longer than any message is given up, and one of ours takes its place.
    ///
    /// # Errors
    /// As [`Upstream::next`], or if an answer is longer than `limit` bytes, or than there is room for.
    pub async fn whole(&mut self, limit: usize) -> Result<Bytes, ConnectionFailure> {
        let is_refusal = !self.head.status.is_success();
        let limit = if is_refusal { LONGEST_REFUSAL } else { limit };
        let (mut bytes, mut share) = (Vec::new(), Share::default());
        while let Some(data) = self.next().await? {
            let length = bytes.len() + data.len();
            if length <= limit {
                let covered = share.cover(length.max(bytes.capacity()));
                covered.map_err(ConnectionFailure::NoRoom)?;
                bytes.extend_from_slice(&data);
                // What it has grown to.
                let covered = share.cover(bytes.capacity());
                covered.map_err(ConnectionFailure::NoRoom)?;
                continue;
            }
            if is_refusal {
                self.head.headers.insert(header::CONTENT_TYPE, JSON);
                return Ok(unread_refusal().to_string().into());
            }
            let most = limit >> 20;
            return Err(format!("the answer is larger than {most} MiB").into());
        }
        Ok(share.hold(bytes.into()))
    }
}

fn body_of(bytes: Bytes) -> UnsyncBoxBody<Bytes, ConnectionFailure> {
    Full::new(bytes)
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// In OpenAI's and in Anthropic's form.
fn unread_refusal() -> Value {
    let most = LONGEST_REFUSAL >> 10;
    let message = format!(
        "the model's server refused the request with more than {most} KiB, which are not read"
    );
    json!({"type": "error", "error": {"type": "api_error", "message": message}})
}

/// Whether headers say that a body is of this kind.
pub(crate) fn is_content_type(headers: &HeaderMap, wanted: &str) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;
    use http::StatusCode;
    use http_body::Frame;
    use http_body_util::StreamBody;
    use tierbar_core::json::LONGEST_FIELD;

    fn upstream(status: u16, length: usize) -> Upstream {
        let body = Full::new(Bytes::from(vec![b'x'; length]));
        let (mut head, body) = Response::new(body).into_parts();
        head.status = StatusCode::from_u16(status).unwrap();
        Upstream::new(head, body.map_err(|never| match never {}).boxed_unsync())
    }

    #[tokio::test]
    async fn a_long_refusal_is_replaced_and_a_long_answer_refused() {
        let mut short = upstream(400, LONGEST_REFUSAL);
        assert_eq!(short.whole(9).await.unwrap().len(), LONGEST_REFUSAL);
        let mut long = upstream(503, LONGEST_REFUSAL + 1);
        let body = long.whole(9).await.unwrap();
        assert!(
            is_content_type(&long.head.headers, "application/json") && body.len() < LONGEST_FIELD
        );
        let read = crate::wire::error(long.head.status, &body);
        assert!(read.message.contains("more than 64 KiB"), "{read}");
        assert_eq!(upstream(200, 9).whole(9).await.unwrap().len(), 9);
        assert!(upstream(200, 10).whole(9).await.is_err());
    }

    #[tokio::test]
    async fn what_has_ended_can_be_asked_again() {
        let frames = futures_util::stream::unfold(true, |more| async move {
            more.then(|| (Ok(Frame::data(Bytes::from("x"))), false))
        });
        let head = Response::new(()).into_parts().0;
        let mut upstream = Upstream::new(head, StreamBody::new(frames).boxed_unsync());
        let mut read = Vec::new();
        for _ in 0..3 {
            read.push(upstream.next().await.unwrap());
        }
        assert_eq!(read, [Some(Bytes::from("x")), None, None]);
    }
}

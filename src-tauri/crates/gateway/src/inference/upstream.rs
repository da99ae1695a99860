//! The call of a worker, or of an endpoint in its place, over a connection of its own. Dropping it closes the connection, at which
//! the worker stops.

use super::{clouds::anthropic, content::Content};
use crate::inference;
use axum::body::{Body, Bytes};
use futures_util::{FutureExt, future::poll_fn};
use http_body_util::{BodyExt, combinators::UnsyncBoxBody};
use hyper::{
    HeaderMap, Request, Response, StatusCode,
    body::{Body as _, Incoming},
    client::conn::http1,
    header::{self, HeaderValue},
    http::response::Parts,
};
use hyper_util::rt::TokioIo;
use secrecy::SecretString;
use serde_json::{Map, Value};
use std::{fmt, future::Future, io, pin::Pin, task::Poll};
use tierbar_core::{
    Error,
    config::Dialect,
    lease::{Address, Endpoint, Foreign},
};
use tierbar_fetch::Remote;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
};

type Driver = Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>;

/// The connection broke, or the answer is not HTTP. The tier's lease knows why its worker ended.
#[derive(Debug)]
pub(crate) struct Broken(String);

impl Broken {
    /// An end before the answer's own.
    pub(crate) fn early() -> Self {
        Self("ended its answer early".to_owned())
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A sentence's end, such as `cannot be reached (…)`.
impl From<String> for Broken {
    fn from(what: String) -> Self {
        Self(what)
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
    body: UnsyncBoxBody<Bytes, Broken>,
    /// Moves the bytes; `None` once the connection has ended, or if another task drives it.
    driver: Option<Driver>,
}

impl Upstream {
    /// Posts the request and waits for the head of the answer.
    ///
    /// # Errors
    /// If the connection cannot be made or breaks before the head is there.
    pub(crate) async fn post(
        endpoint: &Endpoint,
        path: &'static str,
        content: Content,
        remote: &Remote,
        key: Option<&SecretString>,
    ) -> Result<Self, Broken> {
        let upstream = Self::begin(endpoint, path, content, remote, key).await?;
        let status = upstream.head.status;
        // The client asked for neither another protocol nor another place.
        if status.is_informational() || status.is_redirection() {
            return Err(Broken(format!("returned {status}, which is not an answer")));
        }
        Ok(upstream)
    }

    async fn begin(
        endpoint: &Endpoint,
        path: &'static str,
        content: Content,
        remote: &Remote,
        key: Option<&SecretString>,
    ) -> Result<Self, Broken> {
        let Foreign { at, model, dialect } = match endpoint {
            Endpoint::Unix(socket) => {
                let bytes = content.into_bytes();
                let stream = UnixStream::connect(socket).await?;
                return Self::over(stream, path, bytes).await;
            }
            Endpoint::Foreign(foreign) => foreign,
        };
        let cloud =
            matches!(at, Address::Url(url) if *dialect == Dialect::OpenAi && !Remote::is_near(url));
        let request = asking_for(model.as_deref(), cloud, content.into_object());
        match at {
            Address::Unix(socket) => {
                Self::over(
                    UnixStream::connect(socket).await?,
                    path,
                    json(&request).into(),
                )
                .await
            }
            Address::Port(port) => {
                let stream = TcpStream::connect(("127.0.0.1", *port)).await?;
                stream.set_nodelay(true)?;
                Self::over(stream, path, json(&request).into()).await
            }
            Address::Url(url) => {
                if *dialect == Dialect::Anthropic {
                    return anthropic::post(remote, url, path, key, request).await;
                }
                if path == inference::TOKENS {
                    return Ok(Self::refusing(&inference::route::not_counted(url)));
                }
                let mut headers = HeaderMap::new();
                if let Some(key) = key {
                    headers.insert(header::AUTHORIZATION, Remote::key("Bearer", key)?);
                }
                let answer = remote.post(url, path, headers, json(&request)).await?;
                let (head, body) = answer.into_parts();
                Ok(Self::new(head, body.map_err(Broken).boxed_unsync()))
            }
        }
    }

    /// An answer whose connection another task drives.
    pub(crate) fn new(head: Parts, body: UnsyncBoxBody<Bytes, Broken>) -> Self {
        Self {
            head,
            body,
            driver: None,
        }
    }

    /// A refusal in the server's place, of a request that it would not understand.
    pub(crate) fn refusing(error: &Error) -> Self {
        let body = Body::from(error.openai_body().to_string());
        let (mut head, body) = Response::new(body).into_parts();
        head.status = StatusCode::from_u16(error.code.http_status())
            .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let kind = HeaderValue::from_static("application/json");
        head.headers.insert(header::CONTENT_TYPE, kind);
        let body = body.map_err(|error| Broken(error.to_string()));
        Self::new(head, body.boxed_unsync())
    }

    async fn over(
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        path: &'static str,
        json: Bytes,
    ) -> Result<Self, Broken> {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
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
        let body = body.map_err(Broken::from).boxed_unsync();
        Ok(Self { head, body, driver })
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

    pub(crate) fn is_json(&self) -> bool {
        is(&self.head.headers, "application/json")
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

pub(crate) fn is_event_stream(headers: &HeaderMap) -> bool {
    is(headers, "text/event-stream")
}

fn is(headers: &HeaderMap, wanted: &str) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with(wanted))
}

/// The request with the name that the server knows its model by, or with none: our names mean nothing to it, and some servers
/// load what they are asked for. Clouds refuse fields that are not OpenAI's: those that say whether to think, or to go on with the last message, stay here, since
/// servers of this machine and network know them.
fn asking_for(
    model: Option<&str>,
    cloud: bool,
    mut request: Map<String, Value>,
) -> Map<String, Value> {
    // Ours alone.
    request.shift_remove("keep_alive");
    if cloud {
        request.shift_remove("add_generation_prompt");
        request.shift_remove("continue_final_message");
        request.shift_remove("think");
        request.shift_remove("thinking_budget_tokens");
    }
    // Most of these know it by that name.
    if let (false, Some(&Value::Bool(think))) = (cloud, request.get("think")) {
        let named = request.entry("chat_template_kwargs");
        if let Value::Object(named) = named.or_insert_with(|| Map::new().into()) {
            named.entry("enable_thinking").or_insert(think.into());
        }
    }
    match model {
        Some(model) => {
            request.insert("model".to_owned(), model.into());
        }
        None => {
            request.shift_remove("model");
        }
    }
    request
}

fn json(request: &Map<String, Value>) -> Vec<u8> {
    serde_json::to_vec(request).unwrap_or_default()
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

    #[test]
    fn only_local_servers_get_our_own_fields() {
        let ask = br#"{"model":"fast","keep_alive":5,"continue_final_message":true,"think":true,"thinking_budget_tokens":9,"reasoning_effort":"low"}"#;
        let object = |json: &[u8]| serde_json::from_slice::<Map<String, Value>>(json).unwrap();
        let sent = |cloud| {
            let request = asking_for(Some("m"), cloud, object(ask));
            String::from_utf8(json(&request)).unwrap()
        };
        assert_eq!(sent(true), r#"{"model":"m","reasoning_effort":"low"}"#);
        assert_eq!(
            sent(false),
            r#"{"model":"m","continue_final_message":true,"think":true,"thinking_budget_tokens":9,"reasoning_effort":"low","chat_template_kwargs":{"enable_thinking":true}}"#
        );
        let own = br#"{"model":"m","think":false,"chat_template_kwargs":{"enable_thinking":true}}"#;
        assert_eq!(json(&asking_for(Some("m"), false, object(own))), &own[..]);
        for near in [
            "http://127.0.0.1:1",
            "http://gpubox:80",
            "http://[::1]",
            "http://a.local",
        ] {
            assert!(Remote::is_near(near), "{near}");
        }
        assert!(!Remote::is_near("https://api.openai.com"));
        assert!(!Remote::is_near("http://8.8.8.8"));
    }
}

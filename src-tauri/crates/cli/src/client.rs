//! A client of the running host, or of one started for the duration of a command.

use futures_util::{Stream, StreamExt};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;
use sse_stream::{Sse, SseByteStream};
use std::{
    path::PathBuf,
    pin::Pin,
    time::{Duration, Instant},
};
pub(crate) use tierbar_core::json::{read_answer, read_field};
use tierbar_core::{Code, Error, status::TierStatus};
use tierbar_host::{Host, HostKind, HostOptions, RunningHost};
use url::form_urlencoded;

/// How long to wait for a host that is shutting down: it gives answers and connections a few seconds each.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(15);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Returns the path of an admin call. Each part is percent-encoded.
pub(crate) fn admin_path(parts: &[&str], query: &[(&str, &str)]) -> String {
    let mut path = "/tierbar/v1".to_owned();
    for part in parts {
        path.push('/');
        let encoded: String = form_urlencoded::byte_serialize(part.as_bytes()).collect();
        // Form encoding writes a space as a plus, which a path takes literally.
        path.push_str(&encoded.replace('+', "%20"));
    }
    if query.is_empty() {
        return path;
    }
    path.push('?');
    let start = path.len();
    let mut pairs = form_urlencoded::Serializer::for_suffix(path, start);
    pairs.extend_pairs(query).finish()
}

/// A connection to a host's API.
#[derive(Debug)]
pub(crate) struct Client {
    http: reqwest::Client,
    host: RunningHost,
    /// The same, if this command started it.
    own: Option<Host>,
}

/// Returns the running host.
///
/// # Errors
/// `ShuttingDown` if none runs.
pub(crate) fn running(home: Option<&PathBuf>) -> Result<RunningHost, Error> {
    tierbar_host::find_running_host(home.map(PathBuf::as_path)).ok_or_else(|| {
        Error::new(Code::ShuttingDown, "Tierbar is not running")
            .hint("open the app or run `tierbar serve`")
    })
}

/// Runs a command with the running host, or with one that is started for it.
pub(crate) async fn with_host<T>(
    home: Option<PathBuf>,
    command: impl AsyncFnOnce(&Client) -> Result<T, Error>,
) -> Result<T, Error> {
    with_client(Client::running_or_own(home).await?, command).await
}

/// Runs a command, and then shuts down the host if it was started for it.
pub(crate) async fn with_client<T>(
    client: Client,
    command: impl AsyncFnOnce(&Client) -> Result<T, Error>,
) -> Result<T, Error> {
    let outcome = command(&client).await;
    client.close().await;
    outcome
}

impl Client {
    pub(crate) fn running(home: Option<&PathBuf>) -> Result<Self, Error> {
        Ok(Self::new(running(home)?, None))
    }

    /// Connects to the running host, or starts one on a free port.
    pub(crate) async fn running_or_own(home: Option<PathBuf>) -> Result<Self, Error> {
        let options = HostOptions {
            home,
            listen: Some("127.0.0.1:0".to_owned()),
            worker: None,
            kind: HostKind::Cli,
        };
        let begun = Instant::now();
        loop {
            if let Ok(client) = Self::running(options.home.as_ref()) {
                return Ok(client);
            }
            match Host::start(options.clone()).await {
                Ok(host) => return Ok(Self::new(host.running(), Some(host))),
                // Another host is starting up or shutting down.
                Err(error)
                    if error.code == Code::AlreadyRunning && begun.elapsed() < SHUTDOWN_TIMEOUT =>
                {
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn new(host: RunningHost, own: Option<Host>) -> Self {
        let http = tierbar_fetch::loopback().build().unwrap_or_default();
        Self { http, host, own }
    }

    /// Returns whether this command started the host and ends it.
    pub(crate) fn is_own(&self) -> bool {
        self.own.is_some()
    }

    /// Connects to the next host, once this one has released the data folder.
    pub(crate) async fn next(&self, home: Option<PathBuf>) -> Result<Self, Error> {
        let begun = Instant::now();
        while tierbar_host::find_running_host(home.as_deref())
            .is_some_and(|host| host.pid == self.host.pid)
        {
            if begun.elapsed() > SHUTDOWN_TIMEOUT {
                return Err(self.unresponsive("it is still shutting down"));
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Self::running_or_own(home).await
    }

    /// Shuts down the host that this command started.
    pub(crate) async fn close(self) {
        if let Some(host) = self.own {
            host.shutdown().await;
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value, Error> {
        self.json(Method::GET, path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Value, Error> {
        self.json(Method::POST, path, Some(body)).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Result<Value, Error> {
        self.json(Method::PUT, path, Some(body)).await
    }

    pub(crate) async fn patch(&self, path: &str, body: &Value) -> Result<Value, Error> {
        self.json(Method::PATCH, path, Some(body)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Result<Value, Error> {
        self.json(Method::DELETE, path, None).await
    }

    pub(crate) async fn list<T: DeserializeOwned>(
        &self,
        path: &str,
        name: &str,
    ) -> Result<Vec<T>, Error> {
        read_field(self.get(path).await?, name)
    }

    pub(crate) async fn tiers(&self) -> Result<Vec<TierStatus>, Error> {
        self.list("/tierbar/v1/status", "tiers").await
    }

    /// Sends a request whose answer is a stream of events.
    pub(crate) async fn events(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Events, Error> {
        Ok(Events::from_response(self.send(method, path, body).await?))
    }

    pub(crate) async fn upload(&self, path: &str, file: Vec<u8>) -> Result<Value, Error> {
        let request = self.request(Method::POST, path).body(file);
        self.parse(self.answer(path, request).await?).await
    }

    async fn json(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, Error> {
        self.parse(self.send(method, path, body).await?).await
    }

    async fn parse(&self, response: Response) -> Result<Value, Error> {
        if response.status() == StatusCode::NO_CONTENT {
            return Ok(Value::Null);
        }
        // Each answer is an object, whose fields commands take by their names.
        let read = response.json().await.map(Value::Object);
        read.map_err(|error: reqwest::Error| self.unresponsive(&error.to_string()))
    }

    /// Sends a request. An error status becomes the error in its body.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Response, Error> {
        let mut request = self.request(method, path);
        if let Some(body) = body {
            request = request.json(body);
        }
        self.answer(path, request).await
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http
            .request(method, format!("{}{path}", self.host.url))
            .bearer_auth(&self.host.token)
            // A command does not come back later for an answer.
            .header("x-tierbar-queue", "never")
    }

    async fn answer(&self, path: &str, request: RequestBuilder) -> Result<Response, Error> {
        let sent = request.send().await;
        let response = sent.map_err(|error| self.unresponsive(&error.to_string()))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let tier = header(&response, "x-tierbar-tier").map(str::to_owned);
        let body: Value = response.json().await.unwrap_or_default();
        Err(Error::from_openai_body(&body).unwrap_or_else(|| {
            let from = tier.unwrap_or_else(|| format!("{}{path}", self.host.url));
            refusal_error(status, &from, &body)
        }))
    }

    /// The error of a host that has quit, or that holds its lock and does not respond.
    fn unresponsive(&self, why: &str) -> Error {
        let message = format!("Tierbar at {} does not respond: {why}", self.host.url);
        let hint = "if it is still running, quit it and start it again, then repeat the command";
        Error::new(Code::ShuttingDown, message).hint(hint)
    }
}

pub(crate) fn header<'a>(answer: &'a Response, name: &str) -> Option<&'a str> {
    answer.headers().get(name)?.to_str().ok()
}

/// The events of an answer.
pub(crate) struct Events(Pin<Box<dyn Stream<Item = Result<Sse, sse_stream::Error>>>>);

pub(crate) struct Event {
    pub(crate) name: Option<String>,
    /// Null for the `[DONE]` of OpenAI's streams.
    pub(crate) data: Value,
}

impl Events {
    pub(crate) fn from_response(answer: Response) -> Self {
        Self(Box::pin(SseByteStream::new(answer.bytes_stream())))
    }

    /// Returns the next event; `None` at the end of the stream.
    ///
    /// # Errors
    /// Why the stream has broken off.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, String> {
        while let Some(event) = self.0.next().await {
            let Sse { event, data, .. } = event.map_err(|error| error.to_string())?;
            let data = match data.as_deref() {
                None => continue,
                Some("[DONE]") => Value::Null,
                Some(data) => serde_json::from_str(data)
                    .map(Value::Object)
                    .map_err(|error| format!("an event is not a JSON object: {error}"))?,
            };
            return Ok(Some(Event { name: event, data }));
        }
        Ok(None)
    }
}

/// The error of another server's refusal, which the host passes on as it is: its own message, and what its status means.
fn refusal_error(status: StatusCode, from: &str, body: &Value) -> Error {
    let places = ["/error/message", "/message", "/error", "/detail"];
    let message = places
        .iter()
        .find_map(|place| body.pointer(place)?.as_str())
        .filter(|message| !message.trim().is_empty());
    let code = match status.as_u16() {
        401..=403 => Code::AccessDenied,
        404 => Code::NotFound,
        408 => Code::RequestTimeout,
        413 => Code::PayloadTooLarge,
        429 | 503 => Code::Overloaded,
        400..=499 => Code::BadRequest,
        502 | 504 => Code::Unreachable,
        _ => Code::Internal,
    };
    let message = match message {
        Some(message) => format!("{from} did not answer: {message}"),
        None => format!("{from} returned {status} without an error message"),
    };
    Error::new(code, message)
}

#[cfg(test)]
mod tests {
    use super::{admin_path, refusal_error};
    use reqwest::StatusCode;
    use serde_json::{Value, json};
    use tierbar_core::Code;

    #[test]
    fn another_servers_refusal_keeps_its_words_and_names_the_tier() {
        let told = json!({"error": {"message": "Rate limited.", "type": "rate_limit_error"}});
        let error = refusal_error(StatusCode::TOO_MANY_REQUESTS, "heavy", &told);
        assert_eq!(error.message, "heavy did not answer: Rate limited.");
        assert_eq!(error.code, Code::Overloaded);
        for (status, code) in [
            (503, Code::Overloaded),
            (502, Code::Unreachable),
            (504, Code::Unreachable),
            (401, Code::AccessDenied),
            (422, Code::BadRequest),
            (500, Code::Internal),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            let error = refusal_error(status, "heavy", &Value::Null);
            assert_eq!(error.code, code);
            assert!(error.message.starts_with("heavy returned "), "{error}");
        }
    }

    #[test]
    fn model_names_are_percent_encoded() {
        assert_eq!(
            admin_path(&["models", "a b/c+ü?.gguf", "verify"], &[]),
            "/tierbar/v1/models/a%20b%2Fc%2B%C3%BC%3F.gguf/verify"
        );
        assert_eq!(
            admin_path(&["models", "fit"], &[("model", "a/b:Q4&x=1")]),
            "/tierbar/v1/models/fit?model=a%2Fb%3AQ4%26x%3D1"
        );
    }
}

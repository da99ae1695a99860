//! A host to talk to: the one that runs, or one of our own for as long as the command runs.

use reqwest::{Method, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::{
    path::PathBuf,
    time::{Duration, Instant},
};
use tierbar_core::{Code, Error};
use tierbar_host::{Host, HostKind, HostOptions};
use url::form_urlencoded;

/// A host that ends gives the answers that still run a few seconds, and its connections as many.
const ENDING: Duration = Duration::from_secs(15);
const LOOK: Duration = Duration::from_millis(50);

/// Names an admin call: a path of parts, each of which may hold anything.
pub(crate) fn admin(parts: &[&str], query: &[(&str, &str)]) -> String {
    let mut path = "/tierbar/v1".to_owned();
    for part in parts {
        path.push('/');
        let encoded: String = form_urlencoded::byte_serialize(part.as_bytes()).collect();
        // A form's way of writing a space means a plus in a path.
        path.push_str(&encoded.replace('+', "%20"));
    }
    if query.is_empty() {
        return path;
    }
    let query = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(query)
        .finish();
    format!("{path}?{query}")
}

/// What the host has answered, in our types.
pub(crate) fn read<T: DeserializeOwned>(body: Value) -> Result<T, Error> {
    serde_json::from_value(body).map_err(|error| {
        Error::new(
            Code::Internal,
            format!("the running host is of another version: {error}"),
        )
    })
}

/// A connection to a host's API.
#[derive(Debug)]
pub(crate) struct Client {
    http: reqwest::Client,
    url: String,
    token: String,
    /// The host's.
    pid: u32,
    /// The host that was started for this command.
    own: Option<Host>,
}

impl Client {
    /// Connects to the host that runs.
    pub(crate) fn running(home: Option<&PathBuf>) -> Result<Self, Error> {
        let running = tierbar_host::running(home.map(PathBuf::as_path)).ok_or_else(|| {
            Error::new(Code::NotFound, "no Tierbar is running")
                .hint("open the app, or run `tierbar serve`")
        })?;
        Ok(Self::new(running.url, running.token, running.pid, None))
    }

    /// Connects to the host that runs, or starts one on a free port.
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
                Ok(host) => {
                    return Ok(Self::new(
                        host.url().to_owned(),
                        host.token().to_owned(),
                        std::process::id(),
                        Some(host),
                    ));
                }
                // Another one begins at this moment, or ends.
                Err(error) if error.code == Code::AlreadyRunning && begun.elapsed() < ENDING => {
                    tokio::time::sleep(LOOK).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn new(url: String, token: String, pid: u32, own: Option<Host>) -> Self {
        let http = tierbar_fetch::loopback().build().unwrap_or_default();
        Self {
            http,
            url,
            token,
            pid,
            own,
        }
    }

    /// Whether the host was started for this command, and ends with it.
    pub(crate) fn is_own(&self) -> bool {
        self.own.is_some()
    }

    /// The next host, once the one that this client talked to has given the data folder back.
    pub(crate) async fn next(&self, home: Option<PathBuf>) -> Result<Self, Error> {
        let begun = Instant::now();
        while tierbar_host::running(home.as_deref()).is_some_and(|host| host.pid == self.pid) {
            if begun.elapsed() > ENDING {
                return Err(self.silent("it ends, and does not come to its end"));
            }
            tokio::time::sleep(LOOK).await;
        }
        Self::running_or_own(home).await
    }

    /// Ends the host that was started for this command.
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

    pub(crate) async fn patch(&self, path: &str, body: &Value) -> Result<Value, Error> {
        self.json(Method::PATCH, path, Some(body)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Result<Value, Error> {
        self.json(Method::DELETE, path, None).await
    }

    async fn json(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, Error> {
        let response = self.send(method, path, body).await?;
        if response.status() == StatusCode::NO_CONTENT {
            return Ok(Value::Null);
        }
        let read = response.json().await;
        read.map_err(|error: reqwest::Error| self.silent(&error.to_string()))
    }

    /// Sends a request; an error status becomes the error that its body tells.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Response, Error> {
        let mut request = self
            .http
            .request(method, format!("{}{path}", self.url))
            .bearer_auth(&self.token)
            // Nobody comes back for an answer that a command did not get.
            .header("x-tierbar-queue", "never");
        if let Some(body) = body {
            request = request.json(body);
        }
        let sent = request.send().await;
        let response = sent.map_err(|error| self.silent(&error.to_string()))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let body: Value = response.json().await.unwrap_or_default();
        Err(Error::from_openai_body(&body).unwrap_or_else(|| {
            Error::new(
                Code::Internal,
                format!("{}{path} answered {status}", self.url),
            )
        }))
    }

    /// The host has ended meanwhile, or lives, by its lock, and does not answer.
    fn silent(&self, why: &str) -> Error {
        Error::new(
            Code::ShuttingDown,
            format!("the host at {} does not answer: {why}", self.url),
        )
        .hint("end it and start it again if it still runs, then repeat the command")
    }
}

#[cfg(test)]
mod tests {
    use super::admin;

    #[test]
    fn a_call_names_a_model_whatever_its_name_has_in_it() {
        assert_eq!(
            admin(&["models", "a b/c+ü?.gguf", "verify"], &[]),
            "/tierbar/v1/models/a%20b%2Fc%2B%C3%BC%3F.gguf/verify"
        );
        assert_eq!(
            admin(&["models", "fit"], &[("model", "a/b:Q4&x=1")]),
            "/tierbar/v1/models/fit?model=a%2Fb%3AQ4%26x%3D1"
        );
    }
}

//! A host to talk to: the one that runs, or one of our own for as long as the command runs.

use reqwest::{Method, Response};
use serde_json::Value;
use std::path::PathBuf;
use tierbar_core::{Code, Error};
use tierbar_host::{Host, HostKind, HostOptions};

/// A connection to a host's API.
#[derive(Debug)]
pub(crate) struct Client {
    http: reqwest::Client,
    url: String,
    token: String,
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
        Ok(Self::new(running.url, running.token, None))
    }

    /// Connects to the host that runs, or starts one on a free port.
    pub(crate) async fn running_or_own(home: Option<PathBuf>) -> Result<Self, Error> {
        if let Ok(client) = Self::running(home.as_ref()) {
            return Ok(client);
        }
        let options = HostOptions {
            home,
            listen: Some("127.0.0.1:0".to_owned()),
            worker: None,
            kind: HostKind::Cli,
        };
        let host = Host::start(options).await?;
        Ok(Self::new(
            host.url().to_owned(),
            host.token().to_owned(),
            Some(host),
        ))
    }

    fn new(url: String, token: String, own: Option<Host>) -> Self {
        // A proxy that is configured for the web has no business between us and our own machine.
        let http = reqwest::Client::builder()
            .no_proxy()
            .build()
            .unwrap_or_default();
        Self {
            http,
            url,
            token,
            own,
        }
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

    async fn json(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, Error> {
        let response = self.send(method, path, body).await?;
        response.json().await.map_err(|error| self.silent(&error))
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
            .bearer_auth(&self.token);
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await.map_err(|error| self.silent(&error))?;
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

    /// The host's process lives, by its lock, and does not answer.
    pub(crate) fn silent(&self, error: &reqwest::Error) -> Error {
        Error::new(
            Code::Internal,
            format!("the host at {} does not answer: {error}", self.url),
        )
    }
}

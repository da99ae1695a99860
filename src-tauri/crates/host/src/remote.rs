//! Uses a running host over its API, in this process or in another: what the menu does.

use crate::{HostKind, RunningHost};
use futures_util::{StreamExt, TryStreamExt};
use reqwest::{ClientBuilder, Method, Response};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use sse_stream::SseByteStream;
use std::{path::PathBuf, sync::OnceLock, time::Duration};
use tierbar_core::{Code, Config, Error, TierId, journal::Entry, status::Status};

/// How long a host that is followed may say nothing. It says something every 15 seconds.
const SILENCE: Duration = Duration::from_secs(40);

/// What a host that is followed says.
#[derive(Debug)]
pub enum HostEvent {
    Status(Box<Status>),
    /// An entry of the event log.
    Log(Entry),
}

impl RunningHost {
    /// Loads a tier; returns once it is ready.
    ///
    /// # Errors
    /// Why it is not; `Internal` if the host does not answer.
    pub async fn start(&self, tier: &TierId) -> Result<(), Error> {
        let call = format!("tiers/{tier}/start");
        self.post(&call, json!({})).await.map(drop)
    }

    /// Unloads a tier; returns once its memory is free. Answers in progress finish before, unless `force`.
    ///
    /// # Errors
    /// Why it is not; `Internal` if the host does not answer.
    pub async fn stop(&self, tier: &TierId, force: bool) -> Result<(), Error> {
        let call = format!("tiers/{tier}/stop");
        let body = json!({"force": force});
        self.post(&call, body).await.map(drop)
    }

    /// Refuses new requests while paused. Answers in progress finish.
    ///
    /// # Errors
    /// `Internal` if the host does not answer.
    pub async fn set_paused(&self, paused: bool) -> Result<(), Error> {
        let call = if paused { "pause" } else { "resume" };
        self.post(call, json!({})).await.map(drop)
    }

    /// # Errors
    /// `Conflict` if the host is another version; `Internal` if it does not answer.
    pub async fn status(&self) -> Result<Status, Error> {
        self.get("status").await
    }

    /// Returns the folder of models.
    ///
    /// # Errors
    /// `Storage` if it cannot be read; `Internal` if the host does not answer.
    pub async fn models_dir(&self) -> Result<PathBuf, Error> {
        let listed: Value = self.get("models").await?;
        Ok(listed["models_dir"].as_str().unwrap_or_default().into())
    }

    /// Returns the file that a passage is from.
    ///
    /// # Errors
    /// `NotFound` if the passage is gone; `Internal` if the host does not answer.
    pub async fn document_of(&self, passage: u64) -> Result<PathBuf, Error> {
        let around: Value = self.get(&format!("passages/{passage}")).await?;
        let mut passages = around["passages"].as_array().into_iter().flatten();
        let found = passages.find(|found| found["id"] == passage);
        let path = found.and_then(|found| found["path"].as_str());
        path.map(PathBuf::from).ok_or_else(|| {
            let message = format!("the passage {passage} no longer exists");
            Error::new(Code::NotFound, message)
        })
    }

    /// Returns an address that signs a browser in, once and within ten minutes.
    ///
    /// # Errors
    /// `Internal` if the host does not answer.
    pub async fn sign_in_link(&self) -> Result<String, Error> {
        let response = self.post("session/code", json!({})).await?;
        let answer: Value = self.read_answer(response).await?;
        let code = answer["code"].as_str().unwrap_or_default();
        Ok(format!("{}/#code={code}", self.url))
    }

    /// Returns the configuration.
    ///
    /// # Errors
    /// `Conflict` if the host is another version; `Internal` if it does not answer.
    pub async fn config(&self) -> Result<Config, Error> {
        let answer: Value = self.get("config").await?;
        self.understand(answer["config"].clone())
    }

    /// Changes a part of the configuration.
    ///
    /// # Errors
    /// Why the host refuses it; `Internal` if it does not answer.
    pub async fn change_config(&self, patch: &Value) -> Result<(), Error> {
        let changed = self.send(Method::PATCH, "config", Some(patch)).await;
        changed.map(drop)
    }

    /// Returns the last entry of the event log.
    ///
    /// # Errors
    /// `Conflict` if the host is another version; `Internal` if it does not answer.
    pub async fn last_event(&self) -> Result<Option<Entry>, Error> {
        let page: Value = self.get("log?limit=1").await?;
        let entries: Vec<Entry> = self.understand(page["entries"].clone())?;
        Ok(entries.into_iter().next())
    }

    /// Passes on the status, at once and at each change, and what is logged, until the stream ends: the host has ended, or
    /// this app was too slow for it.
    ///
    /// # Errors
    /// `Conflict` if the host is another version; `Internal` if it does not answer.
    pub async fn follow(&self, mut notify: impl FnMut(HostEvent)) -> Result<(), Error> {
        let client = tierbar_fetch::loopback().read_timeout(SILENCE);
        let response = self.send_by(client, Method::GET, "events", None).await?;
        let silent = OnceLock::new();
        let bytes = response.bytes_stream().inspect_err(|error| {
            if error.is_timeout() {
                silent.get_or_init(|| self.silent(error));
            }
        });
        let mut events = SseByteStream::new(bytes);
        let mut status = Map::new();
        while let Some(event) = events.next().await {
            // A host that is killed breaks its stream off; one that hangs says nothing more.
            let Ok(event) = event else {
                return silent.get().cloned().map_or(Ok(()), Err);
            };
            let data = event.data.unwrap_or_default();
            if event.event.as_deref() == Some("log") {
                // One of a newer version is no reason to stop.
                if let Ok(entry) = serde_json::from_str(&data) {
                    notify(HostEvent::Log(entry));
                }
            } else if let Some("snapshot" | "change") = event.event.as_deref() {
                let fields: Map<String, Value> =
                    serde_json::from_str(&data).map_err(|error| self.strange(&error))?;
                status.extend(fields);
                let now = self.understand(Value::Object(status.clone()))?;
                notify(HostEvent::Status(now));
            }
        }
        Ok(())
    }

    async fn get<T: DeserializeOwned>(&self, call: &str) -> Result<T, Error> {
        self.read_answer(self.send(Method::GET, call, None).await?)
            .await
    }

    async fn post(&self, call: &str, body: Value) -> Result<Response, Error> {
        self.send(Method::POST, call, Some(&body)).await
    }

    async fn send(
        &self,
        method: Method,
        call: &str,
        body: Option<&Value>,
    ) -> Result<Response, Error> {
        self.send_by(tierbar_fetch::loopback(), method, call, body)
            .await
    }

    async fn send_by(
        &self,
        client: ClientBuilder,
        method: Method,
        call: &str,
        body: Option<&Value>,
    ) -> Result<Response, Error> {
        let silent = |error: reqwest::Error| self.silent(&error);
        let client = client.build().map_err(silent)?;
        let mut request = client
            .request(method, format!("{}/tierbar/v1/{call}", self.url))
            .bearer_auth(&self.token);
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await.map_err(silent)?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let body: Value = response.json().await.unwrap_or_default();
        Err(Error::from_openai_body(&body).unwrap_or_else(|| {
            Error::new(Code::Internal, format!("{} answered {status}", self.url))
        }))
    }

    async fn read_answer<T: DeserializeOwned>(&self, response: Response) -> Result<T, Error> {
        let body = response.bytes().await;
        let body = body.map_err(|error| self.silent(&error))?;
        serde_json::from_slice(&body).map_err(|error| self.strange(&error))
    }

    fn understand<T: DeserializeOwned>(&self, part: Value) -> Result<T, Error> {
        serde_json::from_value(part).map_err(|error| self.strange(&error))
    }

    fn silent(&self, error: &reqwest::Error) -> Error {
        let message = format!(
            "Tierbar does not answer at {} (pid {}): {error}",
            self.url, self.pid
        );
        Error::new(Code::Internal, message)
    }

    /// What it says is not understood: it is another version.
    fn strange(&self, error: &serde_json::Error) -> Error {
        let message = format!(
            "Tierbar {} runs as process {}, and this app is version {}",
            self.version,
            self.pid,
            env!("CARGO_PKG_VERSION")
        );
        tracing::warn!("{message}: {error}");
        Error::new(Code::Conflict, message).hint(match self.kind {
            HostKind::Serve => "end it, or restart the service with: tierbar service install",
            HostKind::App | HostKind::Cli => "quit it, or wait until it has ended",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    /// A host that hangs: before its answer, or within it.
    async fn follow_one_that_hangs(answer: &'static [u8]) -> Error {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = RunningHost {
            pid: 1,
            version: "1".to_owned(),
            url: format!("http://{}", listener.local_addr().unwrap()),
            token: String::new(),
            kind: HostKind::Serve,
        };
        let hang = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 1000];
            let _ = stream.read(&mut request).await;
            stream.write_all(answer).await.unwrap();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = hang => panic!("it ended"),
            followed = host.follow(|_| {}) => followed.unwrap_err(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_that_hangs_is_given_up() {
        let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: here\n\n";
        for answer in [&b""[..], head] {
            let error = follow_one_that_hangs(answer).await;
            assert_eq!(error.code, Code::Internal, "{error}");
            assert!(error.message.contains("does not answer"), "{error}");
        }
    }
}

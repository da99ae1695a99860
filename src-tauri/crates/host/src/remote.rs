//! Uses a running host over its API, in this process or in another: what the menu does.

use crate::Running;
use futures_util::StreamExt;
use reqwest::{Method, Response};
use serde_json::{Map, Value, json};
use sse_stream::SseByteStream;
use std::path::PathBuf;
use tierbar_core::{Code, Error, TierId, status::Status};

/// What a host says to an app that follows it.
#[derive(Debug)]
pub enum Heard {
    /// The status, at once and at each change.
    Status(Box<Status>),
    /// The chat window is to be shown.
    Raise,
}

impl Running {
    /// Asks the app to show its chat window.
    ///
    /// # Errors
    /// `NotFound` if no app with windows follows the host; `Internal` if it does not answer.
    pub async fn raise(&self) -> Result<(), Error> {
        self.post("raise", &json!({})).await.map(drop)
    }

    /// Loads a tier; returns once it is ready.
    ///
    /// # Errors
    /// Why it is not; `Internal` if the host does not answer.
    pub async fn start(&self, tier: &TierId) -> Result<(), Error> {
        self.post(&format!("tiers/{tier}/start"), &json!({}))
            .await
            .map(drop)
    }

    /// Unloads a tier; returns once its memory is free. Answers in progress finish before, unless `force`.
    ///
    /// # Errors
    /// Why it is not; `Internal` if the host does not answer.
    pub async fn stop(&self, tier: &TierId, force: bool) -> Result<(), Error> {
        self.post(&format!("tiers/{tier}/stop"), &json!({"force": force}))
            .await
            .map(drop)
    }

    /// Refuses new requests while paused. Answers in progress finish.
    ///
    /// # Errors
    /// `Internal` if the host does not answer.
    pub async fn set_paused(&self, paused: bool) -> Result<(), Error> {
        let call = if paused { "pause" } else { "resume" };
        self.post(call, &json!({})).await.map(drop)
    }

    /// # Errors
    /// `Internal` if the host does not answer, or is another version.
    pub async fn status(&self) -> Result<Status, Error> {
        let response = self.send(Method::GET, "status", None).await?;
        read(response).await
    }

    /// Returns the folder of models.
    ///
    /// # Errors
    /// `Storage` if it cannot be read; `Internal` if the host does not answer.
    pub async fn models_dir(&self) -> Result<PathBuf, Error> {
        let listed: Value = read(self.send(Method::GET, "models", None).await?).await?;
        Ok(listed["models_dir"].as_str().unwrap_or_default().into())
    }

    /// Passes on what the host says until its stream ends: the host has ended, or this app was too slow for it.
    ///
    /// # Errors
    /// `Internal` if the host does not answer, or is another version.
    pub async fn follow(&self, mut heard: impl FnMut(Heard)) -> Result<(), Error> {
        let response = self.send(Method::GET, "events?windows=true", None).await?;
        let mut events = SseByteStream::new(response.bytes_stream());
        let mut status = Map::new();
        while let Some(event) = events.next().await {
            // A host that is killed breaks its stream off.
            let Ok(event) = event else { return Ok(()) };
            match event.event.as_deref() {
                Some("raise") => heard(Heard::Raise),
                Some("snapshot" | "change") => {
                    let data = event.data.unwrap_or_default();
                    let fields: Map<String, Value> =
                        serde_json::from_str(&data).map_err(another_version)?;
                    status.extend(fields);
                    let now = serde_json::from_value(Value::Object(status.clone()));
                    heard(Heard::Status(Box::new(now.map_err(another_version)?)));
                }
                _ => {}
            }
        }
        Ok(())
    }

    async fn post(&self, call: &str, body: &Value) -> Result<Response, Error> {
        self.send(Method::POST, call, Some(body)).await
    }

    async fn send(
        &self,
        method: Method,
        call: &str,
        body: Option<&Value>,
    ) -> Result<Response, Error> {
        let silent = |error: reqwest::Error| {
            Error::new(
                Code::Internal,
                format!(
                    "the host at {} (pid {}) does not answer: {error}",
                    self.url, self.pid
                ),
            )
        };
        let client = tierbar_fetch::loopback().build().map_err(silent)?;
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
}

async fn read<T: serde::de::DeserializeOwned>(response: Response) -> Result<T, Error> {
    let body = response.bytes().await.map_err(another_version)?;
    serde_json::from_slice(&body).map_err(another_version)
}

fn another_version(error: impl std::fmt::Display) -> Error {
    Error::new(
        Code::Internal,
        format!("the running Tierbar is another version: {error}"),
    )
    .hint("quit both, and open the app again")
}

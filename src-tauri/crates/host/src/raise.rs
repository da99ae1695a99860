//! Asks the running app to show its window, as a second launch does instead of starting.

use crate::Running;
use serde_json::Value;
use tierbar_core::{Code, Error};

impl Running {
    /// Asks the app to show its chat window.
    ///
    /// # Errors
    /// `NotFound` if the host has no windows; `Internal` if it does not answer.
    pub async fn raise(&self) -> Result<(), Error> {
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
        let request = client
            .post(format!("{}/tierbar/v1/raise", self.url))
            .bearer_auth(&self.token);
        let response = request.send().await.map_err(silent)?;
        let status = response.status();
        if status.is_success() {
            return Ok(());
        }
        let body: Value = response.json().await.unwrap_or_default();
        Err(Error::from_openai_body(&body).unwrap_or_else(|| {
            Error::new(Code::Internal, format!("{} answered {status}", self.url))
        }))
    }
}

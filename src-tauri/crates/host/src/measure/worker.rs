//! Direct requests to a leased worker: what it has allocated, how busy it is, and how long a request takes.

use crate::models::not_measured;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tierbar_chats::ExpertReads;
use tierbar_core::{
    Code, Error,
    lease::{Endpoint, Lease},
    worker::Memory,
};
use tokio::time::timeout;

/// How long the owner may take to report why a worker has ended.
const REASON_DEADLINE: Duration = Duration::from_secs(3);

#[derive(Debug)]
pub(super) struct Worker {
    pub(super) lease: Box<dyn Lease>,
    http: reqwest::Client,
}

/// The part of `/props` that matters here.
#[derive(Debug, Deserialize)]
pub(super) struct Props {
    pub(super) threads: u16,
    pub(super) memory: Memory,
    pub(super) generations: Generations,
    default_generation_settings: GenerationSettings,
}

#[derive(Debug, Deserialize)]
struct GenerationSettings {
    n_ctx: u32,
}

impl Props {
    pub(super) fn context_tokens(&self) -> u32 {
        self.default_generation_settings.n_ctx
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) struct Generations {
    pub(super) running: u64,
    done: u64,
    cancelled: u64,
    failed: u64,
}

impl Generations {
    pub(super) fn ended(self) -> u64 {
        self.done + self.cancelled + self.failed
    }
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct RequestTiming {
    /// From the request to the whole answer, in milliseconds.
    #[serde(skip)]
    pub(super) wall_ms: f64,
    #[serde(rename = "cache_n")]
    pub(super) cached: u32,
    pub(super) prompt_n: u32,
    pub(super) prompt_ms: f64,
    pub(super) predicted_n: u32,
    pub(super) predicted_ms: f64,
    /// What was read, if the model is larger than memory.
    #[serde(rename = "experts")]
    pub(super) reads: Option<ExpertReads>,
}

impl Worker {
    pub(super) fn new(lease: Box<dyn Lease>) -> Result<Self, Error> {
        let Endpoint::Unix(socket) = lease.endpoint() else {
            return Err(not_measured(lease.tier()));
        };
        let http = tierbar_fetch::loopback()
            .unix_socket(socket.clone())
            .build()
            .map_err(|error| Error::new(Code::Internal, error.to_string()))?;
        Ok(Self { lease, http })
    }

    pub(super) async fn props(&self) -> Result<Props, Error> {
        self.send(self.http.get("http://localhost/props")).await
    }

    pub(super) async fn tokenize(&self, text: &str) -> Result<Vec<i32>, Error> {
        #[derive(Deserialize)]
        struct Tokens {
            tokens: Vec<i32>,
        }
        let body = json!({"content": text, "add_special": true});
        let tokens: Tokens = self.post("tokenize", &body).await?;
        Ok(tokens.tokens)
    }

    /// Sends a prompt, which may be cached, for an answer of exactly this many tokens.
    pub(super) async fn complete(
        &self,
        prompt: &[i32],
        answer: u32,
        cache: bool,
    ) -> Result<RequestTiming, Error> {
        #[derive(Deserialize)]
        struct Completion {
            timings: RequestTiming,
        }
        let body = json!({
            "prompt": prompt, "max_tokens": answer, "ignore_eos": true, "temperature": 0,
            "cache_prompt": cache,
        });
        let begun = Instant::now();
        let Completion { timings } = self.post("v1/completions", &body).await?;
        Ok(RequestTiming {
            wall_ms: begun.elapsed().as_secs_f64() * 1e3,
            ..timings
        })
    }

    /// Sends a chat's request, and returns the answer in OpenAI's form.
    pub(super) async fn chat(&self, request: &Value) -> Result<Value, Error> {
        self.post("v1/chat/completions", request).await
    }

    async fn post<T: DeserializeOwned>(&self, path: &str, body: &Value) -> Result<T, Error> {
        let request = self.http.post(format!("http://localhost/{path}"));
        self.send(request.json(body)).await
    }

    async fn send<T: DeserializeOwned>(
        &self,
        request: reqwest::RequestBuilder,
    ) -> Result<T, Error> {
        let answer = async {
            let response = request.send().await?;
            let refused = !response.status().is_success();
            let body: Value = response.json().await?;
            Ok::<_, reqwest::Error>((refused, body))
        };
        match answer.await {
            Ok((false, body)) => serde_json::from_value(body).map_err(|error| {
                let message = format!("the worker has another version: {error}");
                Error::new(Code::Internal, message)
            }),
            Ok((true, body)) => Err(Error::from_openai_body(&body)
                .unwrap_or_else(|| Error::new(Code::Internal, body.to_string()))),
            Err(broken) => Err(self.reason(&broken).await),
        }
    }

    /// Returns why the worker does not answer, as its owner reports it.
    async fn reason(&self, broken: &reqwest::Error) -> Error {
        match timeout(REASON_DEADLINE, self.lease.ended()).await {
            Ok(ended) => ended,
            Err(_) => Error::new(
                Code::WorkerCrashed,
                format!("the worker's answer broke off: {broken}"),
            ),
        }
    }
}

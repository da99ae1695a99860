//! Has the embedder read passages, as a client of the API would.

use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    http::{Request, StatusCode, header},
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{fmt, sync::Arc, time::Duration};
use tierbar_core::{
    Code, Error, ModelKind, TierId, TierState, documents::vectors, lease::Tiers, status::EngineKind,
};
use tierbar_gateway::IndexerRequest;
use tokio::time::sleep;
use tower::ServiceExt;

/// Passages of one request, and between two looks whether to go on: a model of sentences reads these in less than a second.
pub(super) const BATCH: usize = 16;
const ANSWER_LIMIT: usize = 16 << 20;
/// How long a batch waits for an answer that is being written, at most.
const PATIENCE: u32 = 60;
const LOOK: Duration = Duration::from_millis(500);
/// A passage that the model's context does not hold is cut in half so often.
const HALVES: usize = 4;

pub(super) struct Embedder {
    pub(super) tiers: Arc<dyn Tiers>,
    /// The API itself, with the token that opens it.
    pub(super) router: Router,
    pub(super) token: String,
}

impl fmt::Debug for Embedder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedder").finish_non_exhaustive()
    }
}

/// OpenAI's answer.
#[derive(Debug, Deserialize)]
struct Vectors {
    data: Vec<Vector>,
}

#[derive(Debug, Deserialize)]
struct Vector {
    #[serde(default)]
    index: usize,
    embedding: Vec<f32>,
}

/// Returns the tier with a model for embeddings on this machine, and the model's name. A model of an endpoint is none: passages would
/// leave the machine.
pub(super) fn embedder(tiers: &dyn Tiers) -> Option<(TierId, String)> {
    tiers.snapshot().into_iter().find_map(|tier| {
        let is_here = tier.kind == ModelKind::Embedding && tier.engine != EngineKind::Endpoint;
        let model = tier.model.filter(|_| is_here)?;
        Some((tier.id, model.as_str().to_owned()))
    })
}

impl Embedder {
    pub(super) fn tier(&self) -> Option<(TierId, String)> {
        embedder(&*self.tiers)
    }

    /// Returns the packed vectors of at most [`BATCH`] texts, without numbers for a text that the embedder refuses. Answers of other
    /// tiers go first.
    ///
    /// # Errors
    /// Why the embedder does not answer.
    pub(super) async fn embed(
        &self,
        tier: &TierId,
        batch: &[String],
    ) -> Result<Vec<Vec<u8>>, Error> {
        self.wait_for_answers().await;
        match self.ask(tier, batch).await {
            Err(error) if is_refusal(&error) => {
                let mut packed = Vec::with_capacity(batch.len());
                for text in batch {
                    packed.push(self.embed_alone(tier, text).await?);
                }
                Ok(packed)
            }
            answer => answer,
        }
    }

    /// A refused text gets a vector without numbers, or it would keep all others waiting. An embedder that refuses a plain word as well
    /// is at fault itself.
    async fn embed_alone(&self, tier: &TierId, text: &str) -> Result<Vec<u8>, Error> {
        match self.embed_beginning(tier, text).await {
            Err(error) if is_refusal(&error) => {
                self.ask(tier, &["text".to_owned()]).await?;
                tracing::warn!("a passage has no vector: {error}");
                Ok(vectors::pack(&[]))
            }
            answer => answer,
        }
    }

    /// A text that the context does not hold is known by its beginning.
    async fn embed_beginning(&self, tier: &TierId, text: &str) -> Result<Vec<u8>, Error> {
        let mut length = text.len();
        for _ in 0..=HALVES {
            let part = text[..text.floor_char_boundary(length)].to_owned();
            match self.ask(tier, &[part]).await {
                Ok(mut vectors) => return vectors.pop().ok_or_else(|| foreign("no vector")),
                Err(error) if error.code == Code::ContextExceeded => length /= 2,
                Err(error) => return Err(error),
            }
        }
        let message = "the embedder's context is too small for a paragraph";
        Err(Error::new(Code::ContextExceeded, message)
            .hint("give its tier a context of 512 or more"))
    }

    async fn ask(&self, tier: &TierId, texts: &[String]) -> Result<Vec<Vec<u8>>, Error> {
        let body = json!({"model": tier, "input": texts, "encoding_format": "float"});
        let answer = self.send("/v1/embeddings", &body).await?;
        let Vectors { mut data } =
            serde_json::from_slice(&answer).map_err(|error| foreign(&error.to_string()))?;
        if data.len() != texts.len() {
            return Err(foreign(&format!(
                "{} vectors for {} texts",
                data.len(),
                texts.len()
            )));
        }
        data.sort_by_key(|vector| vector.index);
        Ok(data
            .iter()
            .map(|vector| vectors::pack(&vector.embedding))
            .collect())
    }

    /// Sends a request to the API, and returns the answer's body.
    ///
    /// # Errors
    /// Those of the API.
    pub(super) async fn send(&self, path: &str, body: &Value) -> Result<Bytes, Error> {
        let request = Request::post(path)
            .header(header::HOST, "localhost")
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token))
            .header(header::CONTENT_TYPE, "application/json")
            .header("x-tierbar-queue", "never")
            .extension(IndexerRequest)
            .body(Body::from(body.to_string()))
            .map_err(|error| foreign(&error.to_string()))?;
        let response = match self.router.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        let status = response.status();
        let answer = to_bytes(response.into_body(), ANSWER_LIMIT)
            .await
            .map_err(|error| foreign(&error.to_string()))?;
        if status != StatusCode::OK {
            let body: Value = serde_json::from_slice(&answer).unwrap_or_default();
            let error = Error::from_openai_body(&body);
            return Err(error.unwrap_or_else(|| foreign(&format!("status {status}"))));
        }
        Ok(answer)
    }

    /// Waits while a chat model answers: the user may be waiting for it.
    pub(super) async fn wait_for_answers(&self) {
        for _ in 0..PATIENCE {
            let mut tiers = self.tiers.snapshot().into_iter();
            let answers = tiers.any(|tier| {
                tier.kind == ModelKind::Chat
                    && tier.engine != EngineKind::Endpoint
                    && tier.state == TierState::Busy
            });
            if !answers {
                return;
            }
            sleep(LOOK).await;
        }
    }
}

/// Whether the same text would be refused again.
fn is_refusal(error: &Error) -> bool {
    matches!(error.code, Code::ContextExceeded | Code::BadRequest)
}

fn foreign(why: &str) -> Error {
    Error::new(
        Code::Unreachable,
        format!("the model did not answer in OpenAI's form: {why}"),
    )
}

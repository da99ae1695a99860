//! Has the embedder read passages.

use axum::body::Bytes;
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use tierbar_core::{
    Code, Error, ModelKind, TierId, TierState,
    documents::vectors::pack,
    lease::{BoxFuture, Tiers},
    status::{EngineKind, TierStatus},
};
use tierbar_inference::{EMBEDDINGS, vectors};
use tokio::time::sleep;

/// Passages of one request, and between two looks whether to go on: a model of sentences reads these in less than a second.
pub(super) const BATCH: usize = 16;
/// How long a batch waits for an answer that is being written, at most.
const PATIENCE: u32 = 60;
const LOOK: Duration = Duration::from_millis(500);
/// A passage that the model's context does not hold is cut in half so often.
const HALVES: usize = 4;

/// Answers a request in OpenAI's form to a path of the API.
pub(crate) type AnswerFn =
    Box<dyn Fn(&'static str, Value) -> BoxFuture<'static, Result<Bytes, Error>> + Send + Sync>;

pub(super) struct Embedder {
    pub(super) tiers: Arc<dyn Tiers>,
    pub(super) answer: AnswerFn,
}

/// Returns the first such tier with a model on this machine, and the model's name. A model of an endpoint is none: documents would
/// leave the machine.
pub(super) fn local_tier(
    tiers: &dyn Tiers,
    is_one: impl Fn(&TierStatus) -> bool,
) -> Option<(TierId, String)> {
    tiers.snapshot().into_iter().find_map(|tier| {
        let is_here = tier.engine != EngineKind::Endpoint && is_one(&tier);
        let model = tier.model.filter(|_| is_here)?;
        Some((tier.id, model.as_str().to_owned()))
    })
}

pub(super) fn embedder(tiers: &dyn Tiers) -> Option<(TierId, String)> {
    local_tier(tiers, |tier| tier.kind == ModelKind::Embedding)
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
                Ok(pack(&[]))
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
                Ok(mut vectors) => {
                    return vectors
                        .pop()
                        .ok_or_else(|| Error::new(Code::Internal, "no vector"));
                }
                Err(error) if error.code == Code::ContextExceeded => length /= 2,
                Err(error) => return Err(error),
            }
        }
        let message = "the embedder's context is too small for a paragraph";
        Err(Error::new(Code::ContextExceeded, message)
            .hint("give its tier a context of 512 or more"))
    }

    async fn ask(&self, tier: &TierId, texts: &[String]) -> Result<Vec<Vec<u8>>, Error> {
        let fields = vectors::fields(tier, texts);
        let answer = (self.answer)(EMBEDDINGS, fields).await?;
        let answer = vectors::parse_answer(&answer, texts.len())?;
        Ok(answer.vectors.iter().map(|vector| pack(vector)).collect())
    }

    /// Waits while a chat model answers: the user may be waiting for it.
    pub(super) async fn wait_for_answers(&self) {
        for _ in 0..PATIENCE {
            let answers =
                |tier: &TierStatus| tier.kind == ModelKind::Chat && tier.state == TierState::Busy;
            if local_tier(&*self.tiers, answers).is_none() {
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

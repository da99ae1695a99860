//! Examinations by questions, which a model takes once its tier is idle, and what follows from them.

use serde_json::Value;
use std::{sync::Arc, time::Duration};
use tierbar_core::{Error, ModelId, TierId, status::EngineKind};
use tierbar_inference::{
    Inference,
    exams::{self, ExamResult, interruption_error},
};
use tokio::time::timeout;

/// After an answer, the next request often comes within this time.
const QUIET: Duration = Duration::from_secs(10);
/// The timeout of each question, for which no request waits.
const PATIENCE: Duration = Duration::from_secs(60);

/// An examination by questions, each of which is answered rightly or not.
pub(crate) trait Questions: ExamResult {
    fn new(right: usize) -> Self;
    /// Returns a question in OpenAI's form, without a model. `number`: below [`ExamResult::OF`].
    fn question(number: usize) -> Value;
    /// Whether an answer is right. `cut`: it ran into its bound.
    fn is_right(number: usize, answer: &str, cut: bool) -> bool;
}

/// Returns the tier's model, unless a server elsewhere answers for it.
fn local_model(inference: &Inference, tier: &TierId) -> Option<ModelId> {
    let mut tiers = inference.tiers.snapshot().into_iter();
    let tier = tiers.find(|status| status.id == *tier && status.engine != EngineKind::Endpoint)?;
    tier.model
}

/// Whether the tier's model is one of this machine and has failed the examination.
pub(crate) async fn has_failed<R: ExamResult>(inference: &Inference, tier: &TierId) -> bool {
    let Some(model) = local_model(inference, tier) else {
        return false;
    };
    let result = exams::result::<R>(inference, &model).await;
    result.is_some_and(|result| !result.score().1)
}

/// As [`has_failed`], for a tier that has answered: a model that has not been examined is, in the background.
pub(crate) async fn has_failed_or_begins<Q: Questions>(
    inference: &Arc<Inference>,
    tier: &TierId,
) -> bool {
    let Some(model) = local_model(inference, tier) else {
        return false;
    };
    if let Some(result) = exams::result::<Q>(inference, &model).await {
        return !result.score().1;
    }
    let examination = examine::<Q>(Arc::clone(inference), tier.clone(), model.clone());
    exams::begin(inference, &model, examination);
    false
}

/// Asks the questions, each while the tier answers no other request.
async fn examine<Q: Questions>(
    inference: Arc<Inference>,
    tier: TierId,
    model: ModelId,
) -> Result<Q, Error> {
    exams::idle(&inference, &tier, &model, QUIET).await?;
    let mut right = 0;
    for number in 0..Q::OF {
        exams::idle(&inference, &tier, &model, Duration::ZERO).await?;
        let asked = exams::ask(&inference, &tier, Q::question(number));
        let answer = timeout(PATIENCE, asked).await;
        let answer = answer.map_err(|_| interruption_error("an answer took too long"))??;
        let choice = &answer["choices"][0];
        let text = choice["message"]["content"].as_str().unwrap_or_default();
        let cut = choice["finish_reason"] == "length";
        right += usize::from(Q::is_right(number, text, cut));
    }
    Ok(Q::new(right))
}

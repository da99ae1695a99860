//! Examinations by questions, which a model takes once its tier is idle, and what follows from them.

use serde_json::Value;
use std::sync::Arc;
use tierbar_core::{Error, ModelId, TierId, status::EngineKind};
use tierbar_inference::{
    Inference,
    chain::begin_triage_exam,
    exams::{self, ExamResult, Examination},
};
use tierbar_tasks::triage::exam::TriageExam;

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
    failed_or_else::<R>(inference, tier, |_| {}).await
}

/// As [`has_failed`], for a tier that has answered: a model that has not been examined is, in the background.
pub(crate) async fn has_failed_or_begins<Q: Questions>(
    inference: &Arc<Inference>,
    tier: &TierId,
) -> bool {
    failed_or_else::<Q>(inference, tier, |model| {
        exams::begin(inference, tier, model, examine::<Q>);
    })
    .await
}

/// As [`has_failed_or_begins`], for the sorting of messages.
pub(crate) async fn sorts_badly_or_begins(inference: &Arc<Inference>, tier: &TierId) -> bool {
    failed_or_else::<TriageExam>(inference, tier, |model| {
        begin_triage_exam(inference, tier, model);
    })
    .await
}

async fn failed_or_else<R: ExamResult>(
    inference: &Inference,
    tier: &TierId,
    begin: impl FnOnce(&ModelId),
) -> bool {
    let Some(model) = local_model(inference, tier) else {
        return false;
    };
    let result = exams::result::<R>(inference, &model).await;
    if result.is_none() {
        begin(&model);
    }
    result.is_some_and(|result| !result.score().1)
}

/// Asks the questions. One that is not answered in time is answered wrongly.
async fn examine<Q: Questions>(examination: Arc<Examination>) -> Result<Q, Error> {
    let mut right = 0;
    for number in 0..Q::OF {
        let (answer, _) = examination.ask(Q::question(number)).await?;
        let answer = answer.unwrap_or_default();
        let choice = &answer["choices"][0];
        let text = choice["message"]["content"].as_str().unwrap_or_default();
        let cut = choice["finish_reason"] == "length";
        right += usize::from(Q::is_right(number, text, cut));
    }
    Ok(Q::new(right))
}

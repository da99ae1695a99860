//! The fast model's opinion of a request: remembered by content, and used only of a model that has passed the examination.

use super::recent::Recent;
use crate::{
    Inference,
    exams::{self, ExamResult, Examination, interruption_error},
    send,
};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use std::{sync::Arc, time::Duration};
use tierbar_core::{
    Code, Error, ModelId, TierId, TierState,
    judgment::Judgment,
    lease::Purpose,
    status::{EngineKind, TierStatus},
};
use tierbar_routing::{
    Level,
    classifier::{Exam, Opinion, PROBES, question},
};
use tokio::time::timeout;

/// How long a request waits for an opinion.
const BUDGET: Duration = Duration::from_secs(2);
/// The timeout of each question of an examination that a request waits for.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub struct Classifier {
    opinions: Mutex<Recent<[u8; 32], Opinion>>,
}

impl ExamResult for Exam {
    const JUDGMENT: Judgment = Judgment::Routing;
    const OF: usize = PROBES.len();

    fn score(&self) -> (usize, bool) {
        (self.right, self.is_passed())
    }
}

/// A model's opinion, and its examination.
#[derive(Debug, Clone, Copy)]
pub struct Classification {
    pub opinion: Opinion,
    pub exam: Exam,
}

impl Classification {
    pub fn believed(&self) -> Option<Level> {
        self.exam.believed(self.opinion)
    }

    /// The opinion without the model's bias.
    pub fn weighed(&self) -> Opinion {
        self.exam.weigh(self.opinion)
    }
}

/// The tier that is asked, if it is loaded: no model loads for a question.
pub(super) fn loaded_fast_tier(tiers: &[TierStatus]) -> Option<&TierStatus> {
    of_fast(tiers).filter(|tier| matches!(tier.state, TierState::Ready | TierState::Busy))
}

/// The tier that is asked, loaded or not. Endpoints are not asked.
pub(super) fn of_fast(tiers: &[TierStatus]) -> Option<&TierStatus> {
    let fast = |tier: &&TierStatus| Level::of(&tier.id) == Some(Level::Simple);
    let mut here = tiers
        .iter()
        .filter(|tier| tier.engine != EngineKind::Endpoint && tier.model.is_some());
    here.find(fast)
}

/// The opinion, if it is known or arrives within [`BUDGET`]. The first request that needs a model begins its examination.
pub(super) async fn classify_in_time(
    inference: &Arc<Inference>,
    fast: &TierStatus,
    text: &str,
) -> Option<Classification> {
    let model = fast.model.as_ref()?;
    let classified = async {
        let Some(exam) = exams::result::<Exam>(inference, model).await else {
            exams::begin(inference, &fast.id, model, examine);
            return None;
        };
        if !exam.is_passed() {
            return None;
        }
        let opinion = opinion(inference, &fast.id, model, text).await.ok()?;
        Some(Classification { opinion, exam })
    };
    timeout(BUDGET, classified).await.ok()?
}

/// The opinion in any case: loads the tier, and examines its model.
pub(super) async fn classify_always(
    inference: &Inference,
    tier: &TierId,
    model: &ModelId,
    text: &str,
) -> Result<Classification, Error> {
    let exam = match exams::result::<Exam>(inference, model).await {
        Some(exam) => exam,
        None => {
            let exam = examine_now(inference, tier).await?;
            exams::keep(inference, model, exam).await;
            exam
        }
    };
    let opinion = opinion(inference, tier, model, text).await?;
    Ok(Classification { opinion, exam })
}

async fn opinion(
    inference: &Inference,
    tier: &TierId,
    model: &ModelId,
    text: &str,
) -> Result<Opinion, Error> {
    let mut hash = Sha256::new_with_prefix(model.as_str());
    hash.update([0]);
    hash.update(text);
    let key = hash.finalize().into();
    let opinions = &inference.auto.classifier.opinions;
    let remembered = opinions.lock().get(&key);
    if let Some(opinion) = remembered {
        return Ok(opinion);
    }
    let opinion = ask(inference, tier, text).await?;
    opinions.lock().put(key, opinion);
    Ok(opinion)
}

/// Asks the worker itself, with a lease of its own: the choice of a tier, of which it is a part, comes before [`Inference::ask`].
async fn ask(inference: &Inference, tier: &TierId, text: &str) -> Result<Opinion, Error> {
    let none = |why: String| {
        let message = format!("{tier} did not classify the request: {why}");
        Error::new(Code::WorkerCrashed, message)
    };
    let lease = inference.tiers.lease_for(tier, Purpose::Brief).await?;
    let answer = send::ask(inference, &*lease, question(text)).await;
    let answer = answer.map_err(none)?;
    Opinion::from_answer(&answer).ok_or_else(|| none("an unexpected answer".to_owned()))
}

/// Examines the tier's model in the background.
async fn examine(examination: Arc<Examination>) -> Result<Exam, Error> {
    let mut opinions = Vec::with_capacity(PROBES.len());
    for (text, _) in PROBES {
        let (answer, _) = examination.ask(question(text)).await?;
        let answer = answer.ok_or_else(|| interruption_error("an answer took too long"))?;
        let opinion = Opinion::from_answer(&answer);
        opinions.push(opinion.ok_or_else(|| interruption_error("an unexpected answer"))?);
    }
    graded(opinions)
}

/// Examines the tier's model for a request that waits for it.
async fn examine_now(inference: &Inference, tier: &TierId) -> Result<Exam, Error> {
    let mut opinions = Vec::with_capacity(PROBES.len());
    for (text, _) in PROBES {
        let asked = timeout(PATIENCE, ask(inference, tier, text)).await;
        opinions.push(asked.map_err(|_| interruption_error("an answer took too long"))??);
    }
    graded(opinions)
}

fn graded(opinions: Vec<Opinion>) -> Result<Exam, Error> {
    match opinions.try_into() {
        Ok(opinions) => Ok(Exam::from_opinions(&opinions)),
        Err(_) => Err(interruption_error("an answer is missing")),
    }
}

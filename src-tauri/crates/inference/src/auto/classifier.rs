//! The fast model's opinion of a request: remembered by content, and used only of a model that has passed the examination.

use super::{question::ask, recent::Recent};
use crate::Inference;
use sha2::{Digest, Sha256};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tierbar_core::{
    Code, Error, ModelId, TierId, TierState,
    policy::Alarm,
    status::{EngineKind, TierStatus},
};
use tierbar_routing::{
    Level,
    classifier::{Exam, Opinion, PROBES},
};
use tokio::time::timeout;

/// How long a request waits for an opinion.
const BUDGET: Duration = Duration::from_secs(2);
/// The timeout of each question of the examination, for which no request waits.
const PATIENCE: Duration = Duration::from_secs(30);
/// A model whose examination broke off this many times is not examined again.
const ATTEMPTS: u32 = 3;
/// Models whose examinations are remembered.
const MOST: usize = 16;

#[derive(Debug, Default)]
pub struct Classifier(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    opinions: Recent<[u8; 32], Opinion>,
    exams: BTreeMap<ModelId, Standing>,
}

#[derive(Debug, Clone, Copy)]
enum Standing {
    UnderWay,
    /// It broke off.
    Failed {
        attempt: u32,
    },
    Done(Exam),
}

/// A model's opinion, and its examination.
#[derive(Debug, Clone, Copy)]
pub struct Classified {
    pub opinion: Opinion,
    pub exam: Exam,
}

impl Classified {
    pub fn believed(&self) -> Option<Level> {
        self.exam.believed(self.opinion)
    }

    /// The opinion without the model's bias.
    pub fn weighed(&self) -> Opinion {
        self.exam.weigh(self.opinion)
    }
}

/// The tier that is asked, if it is loaded: no model loads for a question.
pub(super) fn tier(tiers: &[TierStatus]) -> Option<&TierStatus> {
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
pub(super) async fn quickly(
    inference: &Arc<Inference>,
    fast: &TierStatus,
    text: &str,
) -> Option<Classified> {
    let model = fast.model.as_ref()?;
    let Some(exam) = inference.auto.classifier.exam(model) else {
        begin(inference, &fast.id, model);
        return None;
    };
    if !exam.is_passed() {
        return None;
    }
    let asked = timeout(BUDGET, opinion(inference, &fast.id, model, text)).await;
    let opinion = asked.ok()?.ok()?;
    Some(Classified { opinion, exam })
}

/// The opinion in any case: loads the tier, and examines its model.
///
/// # Errors
/// Those of a lease on the tier, and of its answers.
pub(super) async fn thoroughly(
    inference: &Inference,
    tier: &TierId,
    model: &ModelId,
    text: &str,
) -> Result<Classified, Error> {
    let classifier = &inference.auto.classifier;
    let exam = match classifier.exam(model) {
        Some(exam) => exam,
        None => {
            let exam = sit(inference, tier, model, false).await?;
            classifier.stand(model, Standing::Done(exam));
            exam
        }
    };
    let opinion = opinion(inference, tier, model, text).await?;
    Ok(Classified { opinion, exam })
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
    let known = inference.auto.classifier.known().opinions.get(&key);
    if let Some(known) = known {
        return Ok(known);
    }
    let opinion = ask(inference, tier, text).await?;
    inference.auto.classifier.known().opinions.put(key, opinion);
    Ok(opinion)
}

/// Examines the model in the background, unless that is under way or has been given up.
fn begin(inference: &Arc<Inference>, tier: &TierId, model: &ModelId) {
    let Some(attempt) = inference.auto.classifier.next_attempt(model) else {
        return;
    };
    let (inference, tier, model) = (Arc::clone(inference), tier.clone(), model.clone());
    tokio::spawn(async move {
        let examined = inference
            .closing
            .run_until_cancelled(sit(&inference, &tier, &model, true));
        let standing = match examined.await {
            Some(Ok(exam)) => {
                tracing::info!(
                    "{model} classified {} of {} test requests correctly{}",
                    exam.right,
                    PROBES.len(),
                    if exam.is_passed() {
                        "; `auto` uses it"
                    } else {
                        "; `auto` uses its rules alone"
                    }
                );
                Standing::Done(exam)
            }
            Some(Err(error)) => {
                tracing::info!("{model} was not tested: {error}");
                Standing::Failed { attempt }
            }
            None => return,
        };
        inference.auto.classifier.stand(&model, standing);
    });
}

/// The examination. `aside`: only while it delays no request.
///
/// # Errors
/// `Cancelled` if it is; those of [`ask`].
async fn sit(
    inference: &Inference,
    tier: &TierId,
    model: &ModelId,
    aside: bool,
) -> Result<Exam, Error> {
    let mut opinions = Vec::with_capacity(PROBES.len());
    for (text, _) in PROBES {
        if aside && !is_free(inference, model) {
            return Err(interrupted("the tier was wanted for something else"));
        }
        let asked = timeout(PATIENCE, ask(inference, tier, text)).await;
        opinions.push(asked.map_err(|_| interrupted("an answer took too long"))??);
    }
    match opinions.try_into() {
        Ok(opinions) => Ok(Exam::of(&opinions)),
        Err(_) => Err(interrupted("an answer is missing")),
    }
}

/// Whether the model is loaded, and no request waits for another tier to come or go.
fn is_free(inference: &Inference, model: &ModelId) -> bool {
    let tiers = inference.tiers.snapshot();
    let moves = |tier: &TierStatus| matches!(tier.state, TierState::Starting | TierState::Stopping);
    inference.services.status().guard.alarm == Alarm::None
        && !tiers.iter().any(moves)
        && tier(&tiers).is_some_and(|fast| fast.model.as_ref() == Some(model))
}

fn interrupted(why: &str) -> Error {
    Error::new(Code::Cancelled, format!("the test was interrupted: {why}"))
}

impl Classifier {
    fn exam(&self, model: &ModelId) -> Option<Exam> {
        match self.known().exams.get(model) {
            Some(Standing::Done(exam)) => Some(*exam),
            _ => None,
        }
    }

    /// The number of the attempt that may begin now, and is under way from here on.
    fn next_attempt(&self, model: &ModelId) -> Option<u32> {
        let mut known = self.known();
        let attempt = match known.exams.get(model) {
            None if known.exams.len() < MOST => 1,
            Some(Standing::Failed { attempt }) if *attempt < ATTEMPTS => attempt + 1,
            _ => return None,
        };
        known.exams.insert(model.clone(), Standing::UnderWay);
        Some(attempt)
    }

    fn stand(&self, model: &ModelId, standing: Standing) {
        self.known().exams.insert(model.clone(), standing);
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! What models are asked once, in the background, before their judgment counts.

use crate::Inference;
use parking_lot::Mutex;
use serde::{Serialize, de::DeserializeOwned};
use std::{collections::BTreeMap, sync::Arc};
use tierbar_core::{
    Code, Error, ModelId, TierId, TierState,
    judgment::{ExamOutcome, Judgment},
    policy::Alarm,
    status::TierStatus,
};

/// A model whose examination broke off this many times is not examined again.
const ATTEMPTS: u32 = 3;
/// Models whose examinations are remembered.
const MOST: usize = 16;

/// The result of an examination, which the host stores by the model's file.
pub(crate) trait ExamResult: Copy + Send + Serialize + DeserializeOwned + 'static {
    const JUDGMENT: Judgment;
    /// How many probes the examination has.
    const OF: usize;

    fn exams(inference: &Inference) -> &Exams<Self>;

    /// How many probes were judged correctly, and whether that is enough.
    fn score(&self) -> (usize, bool);

    /// The median time of an answer, if it was measured.
    fn milliseconds(&self) -> Option<u64> {
        None
    }

    /// Returns it as it is stored.
    fn outcome(&self) -> ExamOutcome {
        let (right, passed) = self.score();
        ExamOutcome {
            judgment: Self::JUDGMENT,
            right: count(right),
            of: count(Self::OF),
            passed,
            milliseconds: self.milliseconds(),
            result: serde_json::to_value(self).unwrap_or_default(),
        }
    }

    /// Whether it holds for later runs of the host.
    fn lasts(&self) -> bool {
        true
    }

    /// Reads a stored outcome; `None` if the examination has changed since, or the outcome was of one run.
    fn from_outcome(outcome: ExamOutcome) -> Option<Self> {
        let result: Option<Self> = serde_json::from_value(outcome.result).ok();
        result.filter(|result| outcome.of == count(Self::OF) && result.lasts())
    }
}

fn count(probes: usize) -> u32 {
    u32::try_from(probes).unwrap_or(u32::MAX)
}

/// The results of one examination, by model.
#[derive(Debug)]
pub(crate) struct Exams<R>(Mutex<BTreeMap<ModelId, ExamState<R>>>);

#[derive(Debug, Clone, Copy)]
enum ExamState<R> {
    /// The host has stored nothing of it.
    Unexamined,
    UnderWay,
    /// It broke off.
    Failed {
        attempt: u32,
    },
    Done(R),
}

impl<R> Default for Exams<R> {
    fn default() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }
}

impl<R: Copy> Exams<R> {
    /// Returns the model's result, if it has been examined.
    fn result(&self, model: &ModelId) -> Option<R> {
        match self.0.lock().get(model) {
            Some(ExamState::Done(result)) => Some(*result),
            _ => None,
        }
    }

    fn is_known(&self, model: &ModelId) -> bool {
        self.0.lock().contains_key(model)
    }

    /// Takes over what the host has stored, or that this is nothing, unless more is known by now.
    fn learn(&self, model: &ModelId, stored: Option<R>) {
        let mut known = self.0.lock();
        if known.len() < MOST && !known.contains_key(model) {
            let state = stored.map_or(ExamState::Unexamined, ExamState::Done);
            known.insert(model.clone(), state);
        }
    }

    fn keep(&self, model: &ModelId, result: R) {
        let done = ExamState::Done(result);
        self.0.lock().insert(model.clone(), done);
    }

    /// The number of the attempt that may begin now, and is under way from here on.
    fn next_attempt(&self, model: &ModelId) -> Option<u32> {
        let mut known = self.0.lock();
        let attempt = match known.get(model) {
            None if known.len() < MOST => 1,
            Some(ExamState::Unexamined) => 1,
            Some(ExamState::Failed { attempt }) if *attempt < ATTEMPTS => attempt + 1,
            _ => return None,
        };
        known.insert(model.clone(), ExamState::UnderWay);
        Some(attempt)
    }
}

/// Returns the model's result, if it has been examined, in this run of the host or an earlier one.
pub(crate) async fn result<R: ExamResult>(inference: &Inference, model: &ModelId) -> Option<R> {
    let exams = R::exams(inference);
    if !exams.is_known(model) {
        let stored = inference.models.exam_outcome(model.clone(), R::JUDGMENT);
        exams.learn(model, stored.await.and_then(R::from_outcome));
    }
    exams.result(model)
}

/// Keeps the model's result for this run of the host and later ones.
pub(crate) async fn keep<R: ExamResult>(inference: &Inference, model: &ModelId, result: R) {
    R::exams(inference).keep(model, result);
    let stored = inference
        .models
        .store_exam_outcome(model.clone(), result.outcome());
    stored.await;
}

/// Examines a model in the background, unless that is under way or has been given up.
pub(crate) fn begin<R: ExamResult>(
    inference: &Arc<Inference>,
    model: &ModelId,
    examination: impl Future<Output = Result<R, Error>> + Send + 'static,
) {
    let Some(attempt) = R::exams(inference).next_attempt(model) else {
        return;
    };
    let (inference, model) = (Arc::clone(inference), model.clone());
    tokio::spawn(async move {
        let examined = inference.closing.run_until_cancelled(examination);
        match examined.await {
            Some(Ok(result)) => keep(&inference, &model, result).await,
            Some(Err(error)) => {
                tracing::info!("{model} was not tested: {error}");
                let failed = ExamState::Failed { attempt };
                R::exams(&inference).0.lock().insert(model, failed);
            }
            None => {}
        }
    });
}

/// Whether the tier is loaded with the model, and no request waits for another tier to come or go.
pub(crate) fn is_free(inference: &Inference, tier: &TierId, model: &ModelId) -> bool {
    let tiers = inference.tiers.snapshot();
    let moves = |tier: &TierStatus| matches!(tier.state, TierState::Starting | TierState::Stopping);
    let is_loaded = |status: &TierStatus| {
        status.id == *tier
            && status.model.as_ref() == Some(model)
            && matches!(status.state, TierState::Ready | TierState::Busy)
    };
    inference.services.status().guard.alarm == Alarm::None
        && !tiers.iter().any(moves)
        && tiers.iter().any(is_loaded)
}

pub(crate) fn interruption_error(why: &str) -> Error {
    Error::new(Code::Cancelled, format!("the test was interrupted: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierbar_tasks::triage::exam::TriageExam;

    #[test]
    fn a_stored_outcome_counts_until_the_probes_change() {
        let exam = TriageExam {
            right: 7,
            milliseconds: 200,
        };
        let outcome = exam.outcome();
        assert_eq!((outcome.right, outcome.of, outcome.passed), (7, 16, false));
        assert_eq!(TriageExam::from_outcome(outcome.clone()), Some(exam));
        let of_fewer = ExamOutcome {
            of: 15,
            ..outcome.clone()
        };
        assert_eq!(TriageExam::from_outcome(of_fewer), None);
        let damaged = ExamOutcome {
            result: serde_json::Value::Null,
            ..outcome
        };
        assert_eq!(TriageExam::from_outcome(damaged), None);
    }

    #[test]
    fn an_examination_that_keeps_breaking_off_is_given_up() {
        let exams = Exams::<usize>::default();
        let model = ModelId("small".to_owned());
        for attempt in 1..=ATTEMPTS {
            assert_eq!(exams.next_attempt(&model), Some(attempt));
            assert_eq!(exams.next_attempt(&model), None, "it is under way");
            let failed = ExamState::Failed { attempt };
            exams.0.lock().insert(model.clone(), failed);
        }
        assert_eq!(exams.next_attempt(&model), None);
        assert_eq!(exams.result(&model), None);
        exams.keep(&model, 7);
        assert_eq!(exams.result(&model), Some(7));
    }
}

//! What models are asked once, in the background, before their judgment counts.

use crate::Inference;
use parking_lot::Mutex;
use std::{collections::BTreeMap, sync::Arc};
use tierbar_core::{Code, Error, ModelId, TierId, TierState, policy::Alarm, status::TierStatus};

/// A model whose examination broke off this many times is not examined again.
const ATTEMPTS: u32 = 3;
/// Models whose examinations are remembered.
const MOST: usize = 16;

/// The results of one examination, by model.
#[derive(Debug)]
pub(crate) struct Exams<R>(Mutex<BTreeMap<ModelId, ExamState<R>>>);

#[derive(Debug, Clone, Copy)]
enum ExamState<R> {
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
    pub(crate) fn result(&self, model: &ModelId) -> Option<R> {
        match self.0.lock().get(model) {
            Some(ExamState::Done(result)) => Some(*result),
            _ => None,
        }
    }

    pub(crate) fn keep(&self, model: &ModelId, result: R) {
        let done = ExamState::Done(result);
        self.0.lock().insert(model.clone(), done);
    }

    /// The number of the attempt that may begin now, and is under way from here on.
    fn next_attempt(&self, model: &ModelId) -> Option<u32> {
        let mut known = self.0.lock();
        let attempt = match known.get(model) {
            None if known.len() < MOST => 1,
            Some(ExamState::Failed { attempt }) if *attempt < ATTEMPTS => attempt + 1,
            _ => return None,
        };
        known.insert(model.clone(), ExamState::UnderWay);
        Some(attempt)
    }
}

/// Examines a model in the background, unless that is under way or has been given up. `exams` finds where the result goes.
pub(crate) fn begin<R: Copy + Send + 'static>(
    inference: &Arc<Inference>,
    model: &ModelId,
    exams: fn(&Inference) -> &Exams<R>,
    examination: impl Future<Output = Result<R, Error>> + Send + 'static,
) {
    let Some(attempt) = exams(inference).next_attempt(model) else {
        return;
    };
    let (inference, model) = (Arc::clone(inference), model.clone());
    tokio::spawn(async move {
        let examined = inference.closing.run_until_cancelled(examination);
        let state = match examined.await {
            Some(Ok(result)) => ExamState::Done(result),
            Some(Err(error)) => {
                tracing::info!("{model} was not tested: {error}");
                ExamState::Failed { attempt }
            }
            None => return,
        };
        exams(&inference).0.lock().insert(model, state);
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

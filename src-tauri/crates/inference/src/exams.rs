//! What models are asked once, in the background, before their judgment counts.

use crate::{Inference, send};
use parking_lot::Mutex;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tierbar_core::{
    Code, Error, ModelId, TierId, TierState,
    judgment::{ExamOutcome, Judgment},
    lease::Purpose,
    policy::Alarm,
    status::TierStatus,
};
use tokio::time::{Instant, sleep};

/// A model whose examination broke off this many times is not examined again.
const ATTEMPTS: u32 = 3;
/// Examinations that are remembered: those of a dozen models.
const MOST: usize = 64;
/// How often an examination looks whether its tier is idle.
const PAUSE: Duration = Duration::from_secs(1);

/// The result of an examination, which the host stores by the model's file.
pub trait ExamResult: Copy + Send + Serialize + DeserializeOwned + 'static {
    const JUDGMENT: Judgment;
    /// How many probes the examination has.
    const OF: usize;

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

    /// Reads an outcome; `None` if the examination has changed since.
    fn from_outcome(outcome: &ExamOutcome) -> Option<Self> {
        let result: Option<Self> = serde_json::from_value(outcome.result.clone()).ok();
        result.filter(|_| outcome.of == count(Self::OF))
    }
}

fn count(probes: usize) -> u32 {
    u32::try_from(probes).unwrap_or(u32::MAX)
}

/// An examination of a model.
type Key = (ModelId, Judgment);

/// What is known of the models' examinations.
#[derive(Debug, Default)]
pub(crate) struct Exams(Mutex<BTreeMap<Key, Known>>);

#[derive(Debug)]
struct Known {
    at: Moment,
    /// It is only of what the worker has loaded.
    of_worker: bool,
    state: ExamState,
}

/// When something was known of a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Moment {
    /// The revision of the list of models. In another one, the name may mean another file.
    revision: u64,
    /// The process that had the model loaded.
    worker: Option<u32>,
}

impl Moment {
    fn now(inference: &Inference, model: &ModelId) -> Self {
        let tiers = inference.tiers.snapshot();
        let mut tiers = tiers.iter();
        let tier = tiers.find(|tier| tier.model.as_ref() == Some(model) && tier.pid.is_some());
        Self {
            revision: inference.services.status().models_revision,
            worker: tier.and_then(|tier| tier.pid),
        }
    }
}

#[derive(Debug)]
enum ExamState {
    /// The host has stored nothing of it.
    Unexamined,
    UnderWay,
    /// It broke off.
    Failed {
        attempt: u32,
    },
    Done(ExamOutcome),
}

impl Known {
    fn of_file(at: Moment, state: ExamState) -> Self {
        Self {
            at,
            of_worker: false,
            state,
        }
    }
}

impl Exams {
    /// Returns the outcome, if the model has been examined.
    fn outcome(&self, key: &Key) -> Option<ExamOutcome> {
        match self.0.lock().get(key)?.state {
            ExamState::Done(ref outcome) => Some(outcome.clone()),
            _ => None,
        }
    }

    fn is_known(&self, key: &Key, now: Moment) -> bool {
        let known = self.0.lock();
        known.get(key).is_some_and(|known| {
            let is_same_worker = !known.of_worker || known.at.worker == now.worker;
            known.at.revision == now.revision && is_same_worker
                || matches!(known.state, ExamState::UnderWay)
        })
    }

    /// Takes over what the host has stored, or that this is nothing, unless more is known by now.
    fn learn(&self, key: &Key, now: Moment, stored: Option<ExamOutcome>) {
        if self.is_known(key, now) {
            return;
        }
        let state = stored.map_or(ExamState::Unexamined, ExamState::Done);
        self.set(key, Known::of_file(now, state));
    }

    fn set(&self, key: &Key, new: Known) {
        let mut known = self.0.lock();
        if known.len() < MOST || known.contains_key(key) {
            known.insert(key.clone(), new);
        }
    }

    /// The number of the attempt that may begin now, and is under way from here on.
    fn next_attempt(&self, key: &Key, now: Moment) -> Option<u32> {
        let mut known = self.0.lock();
        let attempt = match known.get(key).map(|known| &known.state) {
            None if known.len() < MOST => 1,
            Some(ExamState::Unexamined) => 1,
            Some(ExamState::Failed { attempt }) if *attempt < ATTEMPTS => attempt + 1,
            _ => return None,
        };
        known.insert(key.clone(), Known::of_file(now, ExamState::UnderWay));
        Some(attempt)
    }
}

/// Returns the result of the model's file, if it has been examined, in this run of the host or an earlier one.
pub async fn result<R: ExamResult>(inference: &Inference, model: &ModelId) -> Option<R> {
    let (exams, key) = (&inference.auto.exams, (model.clone(), R::JUDGMENT));
    let now = Moment::now(inference, model);
    if !exams.is_known(&key, now) {
        let stored = inference.models.exam_outcome(model.clone(), R::JUDGMENT);
        let lasts =
            |outcome: &ExamOutcome| R::from_outcome(outcome).is_some_and(|exam| exam.lasts());
        exams.learn(&key, now, stored.await.filter(lasts));
    }
    R::from_outcome(&exams.outcome(&key)?)
}

/// Keeps the model's result for this run of the host and later ones; only until it is unloaded if its file has been replaced meanwhile.
pub(crate) async fn keep<R: ExamResult>(inference: &Inference, model: &ModelId, result: R) {
    let outcome = result.outcome();
    let known = Known {
        at: Moment::now(inference, model),
        of_worker: !inference
            .models
            .store_exam_outcome(model.clone(), outcome.clone())
            .await,
        state: ExamState::Done(outcome),
    };
    let key = (model.clone(), R::JUDGMENT);
    inference.auto.exams.set(&key, known);
}

/// Examines a model in the background, unless that is under way or has been given up.
pub fn begin<R: ExamResult>(
    inference: &Arc<Inference>,
    model: &ModelId,
    examination: impl Future<Output = Result<R, Error>> + Send + 'static,
) {
    let (key, begun) = ((model.clone(), R::JUDGMENT), Moment::now(inference, model));
    let Some(attempt) = inference.auto.exams.next_attempt(&key, begun) else {
        return;
    };
    let inference = Arc::clone(inference);
    tokio::spawn(async move {
        let examined = inference.closing.run_until_cancelled(examination);
        let Some(examined) = examined.await else {
            return;
        };
        let now = Moment::now(&inference, &key.0);
        let examined = examined.and_then(|result| match now.revision == begun.revision {
            true => Ok(result),
            false => Err(interruption_error("its file may have been replaced")),
        });
        match examined {
            Ok(result) => keep(&inference, &key.0, result).await,
            Err(error) => {
                tracing::info!("{} was not tested: {error}", key.0);
                let failed = ExamState::Failed { attempt };
                inference.auto.exams.set(&key, Known::of_file(now, failed));
            }
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

/// Waits until the tier, which is loaded with the model, has answered no request for so long.
///
/// # Errors
/// `Cancelled` if it is unloaded, or another tier is loaded or unloaded: no model is loaded for an examination.
pub async fn idle(
    inference: &Inference,
    tier: &TierId,
    model: &ModelId,
    quiet: Duration,
) -> Result<(), Error> {
    // Each request puts off the end of the tier.
    let looks = || {
        let mut tiers = inference.tiers.snapshot().into_iter();
        let status = tiers.find(|status| status.id == *tier);
        status.map(|status| (status.state == TierState::Busy, status.unloads_at_ms))
    };
    let (mut last, mut since) = (looks(), Instant::now());
    while is_free(inference, tier, model) {
        let now = looks();
        if now != last || now.is_some_and(|(is_busy, _)| is_busy) {
            (last, since) = (now, Instant::now());
        } else if since.elapsed() >= quiet {
            return Ok(());
        }
        sleep(PAUSE).await;
    }
    Err(interruption_error("the tier was wanted for something else"))
}

/// Puts a question of an examination to the tier's model. The answer gives way to a request for another tier.
///
/// # Errors
/// Those of a lease, and `Cancelled` for an answer that broke off.
pub async fn ask(inference: &Inference, tier: &TierId, question: Value) -> Result<Value, Error> {
    let lease = inference.tiers.lease_for(tier, Purpose::Background).await?;
    let asked = send::ask(inference, &*lease, question);
    let answer = match lease.revoked() {
        None => asked.await,
        Some(revoked) => tokio::select! {
            answer = asked => answer,
            why = revoked => return Err(why),
        },
    };
    answer.map_err(|why| interruption_error(&why))
}

/// Returns why an examination did not end; it may begin again.
pub fn interruption_error(why: &str) -> Error {
    Error::new(Code::Cancelled, format!("the test was interrupted: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierbar_tasks::triage::exam::TriageExam;

    const EXAM: TriageExam = TriageExam {
        right: 7,
        milliseconds: 200,
    };

    fn key() -> Key {
        (ModelId("small".to_owned()), Judgment::Triage)
    }

    fn at(revision: u64) -> Moment {
        Moment {
            revision,
            worker: Some(7),
        }
    }

    #[test]
    fn a_stored_outcome_counts_until_the_probes_change() {
        let outcome = EXAM.outcome();
        assert_eq!((outcome.right, outcome.of, outcome.passed), (7, 16, false));
        assert_eq!(TriageExam::from_outcome(&outcome), Some(EXAM));
        let of_fewer = ExamOutcome {
            of: 15,
            ..outcome.clone()
        };
        assert_eq!(TriageExam::from_outcome(&of_fewer), None);
        let damaged = ExamOutcome {
            result: Value::Null,
            ..outcome
        };
        assert_eq!(TriageExam::from_outcome(&damaged), None);
    }

    #[test]
    fn an_examination_that_keeps_breaking_off_is_given_up() {
        let (exams, key) = (Exams::default(), key());
        for attempt in 1..=ATTEMPTS {
            assert_eq!(exams.next_attempt(&key, at(0)), Some(attempt));
            assert_eq!(exams.next_attempt(&key, at(0)), None, "it is under way");
            exams.set(&key, Known::of_file(at(0), ExamState::Failed { attempt }));
        }
        assert_eq!(exams.next_attempt(&key, at(0)), None);
        assert_eq!(exams.outcome(&key), None);
        exams.set(&key, Known::of_file(at(0), ExamState::Done(EXAM.outcome())));
        assert_eq!(exams.outcome(&key), Some(EXAM.outcome()));
        let other = (key.0, Judgment::Routing);
        assert_eq!(exams.outcome(&other), None);
    }

    #[test]
    fn a_list_of_other_models_asks_for_the_outcome_again() {
        let (exams, key) = (Exams::default(), key());
        exams.learn(&key, at(0), Some(EXAM.outcome()));
        assert!(exams.is_known(&key, at(0)) && !exams.is_known(&key, at(1)));
        // The name means another file, of which nothing is stored.
        exams.learn(&key, at(1), None);
        assert_eq!(exams.outcome(&key), None);
        assert_eq!(exams.next_attempt(&key, at(1)), Some(1));
        // What is under way is not forgotten.
        exams.learn(&key, at(2), None);
        assert_eq!(exams.next_attempt(&key, at(2)), None);
    }

    #[test]
    fn a_replaced_file_keeps_no_outcome_of_its_worker() {
        let (exams, key) = (Exams::default(), key());
        for (of_worker, is_known) in [(true, false), (false, true)] {
            let known = Known {
                at: at(0),
                of_worker,
                state: ExamState::Done(EXAM.outcome()),
            };
            exams.set(&key, known);
            assert!(exams.is_known(&key, at(0)));
            let reloaded = Moment {
                worker: Some(8),
                ..at(0)
            };
            assert_eq!(exams.is_known(&key, reloaded), is_known, "{of_worker}");
        }
    }
}

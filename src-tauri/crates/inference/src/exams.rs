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
    status::{EngineKind, TierStatus},
};
use tokio::time::{Instant, sleep, timeout};

/// A model whose examination broke off this many times is not examined again.
const ATTEMPTS: u32 = 3;
/// Examinations that are remembered: as many as the host stores.
const MOST: usize = 256;
/// How often an examination looks whether its tier is idle.
const PAUSE: Duration = Duration::from_secs(1);
/// After an answer, the next request often comes within this time.
const QUIET: Duration = Duration::from_secs(10);
/// The timeout of each question, for which no request waits.
const PATIENCE: Duration = Duration::from_secs(60);

/// The result of an examination, which the host stores by the model's file.
pub trait ExamResult: Copy + Send + Serialize + DeserializeOwned + 'static {
    const JUDGMENT: Judgment;
    /// How many probes the examination has.
    const OF: usize;
    /// The edition of its probes and of how they are judged. Models that took another are examined again.
    const EDITION: u64 = 1;

    /// How many probes were judged correctly, and whether that is enough.
    fn score(&self) -> (usize, bool);

    /// The median time of an answer, if it was measured.
    fn milliseconds(&self) -> Option<u64> {
        None
    }

    /// Returns it as it is stored.
    fn outcome(&self) -> ExamOutcome {
        let (right, passed) = self.score();
        let mut result = serde_json::to_value(self).unwrap_or_default();
        result["edition"] = Self::EDITION.into();
        ExamOutcome {
            judgment: Self::JUDGMENT,
            right: count(right),
            of: count(Self::OF),
            passed,
            milliseconds: self.milliseconds(),
            result,
        }
    }

    /// Whether it holds for later runs of the host.
    fn lasts(&self) -> bool {
        true
    }

    /// Reads an outcome; `None` if the examination has changed since.
    fn from_outcome(outcome: &ExamOutcome) -> Option<Self> {
        let result: Option<Self> = serde_json::from_value(outcome.result.clone()).ok();
        // The first had no number.
        let edition = outcome.result["edition"].as_u64().unwrap_or(1);
        result.filter(|_| outcome.of == count(Self::OF) && edition == Self::EDITION)
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

    /// # Errors
    /// `Cancelled` if the model's name may mean another file by now.
    fn check(self, now: Self) -> Result<(), Error> {
        let is_same_worker = self.worker.is_none() || self.worker == now.worker;
        match self.revision == now.revision && is_same_worker {
            true => Ok(()),
            false => Err(interruption_error("its file may have been replaced")),
        }
    }
}

#[derive(Debug)]
enum ExamState {
    /// The host has stored nothing of it.
    Unexamined,
    UnderWay,
    /// It broke off, with so many attempts that asked a question.
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
        // What the host has stored is read again.
        if known.len() >= MOST && !known.contains_key(key) {
            known.retain(|_, known| matches!(known.state, ExamState::UnderWay));
        }
        known.insert(key.clone(), new);
    }

    /// The number of the attempt that may begin now, and is under way from here on.
    fn next_attempt(&self, key: &Key, now: Moment) -> Option<u32> {
        let mut known = self.0.lock();
        let attempt = match known.get(key).map(|known| &known.state) {
            None | Some(ExamState::Unexamined) => 1,
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

/// An examination that is under way.
#[derive(Debug)]
pub struct Examination {
    inference: Arc<Inference>,
    tier: TierId,
    model: ModelId,
    begun: Moment,
}

impl Examination {
    /// Puts a question to the model once no request waits. Returns the answer, `None` if it takes longer than a minute, and its
    /// time.
    ///
    /// # Errors
    /// `Cancelled` if the tier is unloaded or the answer breaks off, and those of a lease.
    pub async fn ask(&self, question: Value) -> Result<(Option<Value>, Duration), Error> {
        let (inference, tier) = (&self.inference, &self.tier);
        idle(inference, tier, &self.model, Duration::ZERO).await?;
        self.check_file()?;
        let begun = Instant::now();
        let answer = ask(inference, tier, question).await?;
        Ok((answer, begun.elapsed()))
    }

    fn check_file(&self) -> Result<(), Error> {
        self.begun.check(Moment::now(&self.inference, &self.model))
    }
}

/// Examines a tier's model in the background once the tier is idle, unless that is under way or has been given up.
pub fn begin<R, F>(
    inference: &Arc<Inference>,
    tier: &TierId,
    model: &ModelId,
    examine: impl FnOnce(Arc<Examination>) -> F + Send + 'static,
) where
    R: ExamResult,
    F: Future<Output = Result<R, Error>> + Send + 'static,
{
    let (key, begun) = ((model.clone(), R::JUDGMENT), Moment::now(inference, model));
    let Some(attempt) = inference.auto.exams.next_attempt(&key, begun) else {
        return;
    };
    let examination = Arc::new(Examination {
        inference: Arc::clone(inference),
        tier: tier.clone(),
        model: model.clone(),
        begun,
    });
    let inference = Arc::clone(inference);
    tokio::spawn(async move {
        let work = async {
            let quiet = idle(&inference, &examination.tier, &key.0, QUIET).await;
            let begins = quiet.and_then(|()| examination.check_file());
            // Nothing has been asked.
            begins.map_err(|error| (attempt - 1, error))?;
            let result = examine(Arc::clone(&examination)).await;
            let result = result.and_then(|result| examination.check_file().map(|()| result));
            result.map_err(|error| (attempt, error))
        };
        match inference.closing.run_until_cancelled(work).await {
            Some(Ok(result)) => keep(&inference, &key.0, result).await,
            Some(Err((attempt, error))) => {
                tracing::info!("{} was not tested: {error}", key.0);
                let now = Moment::now(&inference, &key.0);
                let failed = ExamState::Failed { attempt };
                inference.auto.exams.set(&key, Known::of_file(now, failed));
            }
            None => {}
        }
    });
}

/// Whether the tier is loaded with the model, and no request waits for another tier to come or go.
fn is_free(inference: &Inference, tier: &TierId, model: &ModelId) -> bool {
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

/// Whether this machine answers a request, and when the tier is to be unloaded, which each request puts off.
fn activity(tiers: &[TierStatus], tier: &TierId) -> (bool, Option<u64>) {
    let is_busy = |status: &TierStatus| {
        status.engine != EngineKind::Endpoint && status.state == TierState::Busy
    };
    let status = tiers.iter().find(|status| status.id == *tier);
    let unloads_at = status.and_then(|status| status.unloads_at_ms);
    (tiers.iter().any(is_busy), unloads_at)
}

/// Waits until the tier, which is loaded with the model, and the others of this machine have answered no request for so long.
///
/// # Errors
/// `Cancelled` if it is unloaded, or another tier is loaded or unloaded: no model is loaded for an examination.
async fn idle(
    inference: &Inference,
    tier: &TierId,
    model: &ModelId,
    quiet: Duration,
) -> Result<(), Error> {
    let look = || activity(&inference.tiers.snapshot(), tier);
    let (mut last, mut since) = (look(), Instant::now());
    while is_free(inference, tier, model) {
        let now = look();
        if now != last || now.0 {
            (last, since) = (now, Instant::now());
        } else if since.elapsed() >= quiet {
            return Ok(());
        }
        sleep(PAUSE).await;
    }
    Err(interruption_error("the tier was wanted for something else"))
}

/// Puts a question to the tier's model; `None` if the answer takes longer than [`PATIENCE`]. It gives way to a request for another tier.
async fn ask(
    inference: &Inference,
    tier: &TierId,
    question: Value,
) -> Result<Option<Value>, Error> {
    let lease = timeout(
        PATIENCE,
        inference.tiers.lease_for(tier, Purpose::Background),
    );
    let lease = lease.await;
    let lease =
        lease.map_err(|_| interruption_error("the tier was wanted for something else"))??;
    let asked = timeout(PATIENCE, send::ask(inference, &*lease, question));
    let answer = match lease.revoked() {
        None => asked.await,
        Some(revoked) => tokio::select! {
            answer = asked => answer,
            why = revoked => return Err(why),
        },
    };
    let answer = answer.ok().transpose();
    answer.map_err(|why| interruption_error(&why))
}

/// Returns why an examination did not end; it may begin again.
pub(crate) fn interruption_error(why: &str) -> Error {
    Error::new(Code::Cancelled, format!("the test was interrupted: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
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
        for (edition, exam) in [(json!(2), None), (Value::Null, Some(EXAM))] {
            let mut other = outcome.clone();
            other.result["edition"] = edition;
            assert_eq!(TriageExam::from_outcome(&other), exam);
        }
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
    fn an_attempt_without_a_question_is_not_counted() {
        let (exams, key) = (Exams::default(), key());
        for _ in 0..=ATTEMPTS {
            assert_eq!(exams.next_attempt(&key, at(0)), Some(1));
            let failed = ExamState::Failed { attempt: 0 };
            exams.set(&key, Known::of_file(at(0), failed));
        }
    }

    #[test]
    fn an_outcome_counts_however_many_are_known() {
        let (exams, key) = (Exams::default(), key());
        let under_way = (ModelId("other".to_owned()), Judgment::Triage);
        assert_eq!(exams.next_attempt(&under_way, at(0)), Some(1));
        for model in 0..MOST {
            let one = (ModelId(model.to_string()), Judgment::Triage);
            exams.learn(&one, at(0), None);
        }
        exams.learn(&key, at(0), Some(EXAM.outcome()));
        assert_eq!(exams.outcome(&key), Some(EXAM.outcome()));
        assert_eq!(exams.next_attempt(&under_way, at(0)), None);
        assert!(exams.0.lock().len() <= MOST);
    }

    #[test]
    fn an_examination_is_of_one_file() {
        let replaced = Moment {
            worker: Some(8),
            ..at(0)
        };
        let unloaded = Moment {
            worker: None,
            ..at(0)
        };
        for (begun, now, is_same) in [
            (at(0), at(0), true),
            (at(0), at(1), false),
            (at(0), replaced, false),
            (at(0), unloaded, false),
            (unloaded, at(0), true),
        ] {
            assert_eq!(begun.check(now).is_ok(), is_same, "{begun:?} {now:?}");
        }
    }

    #[test]
    fn an_examination_waits_for_each_tier_of_this_machine() {
        let fast = TierId::new("fast").unwrap();
        for (engine, state, is_busy) in [
            (EngineKind::Endpoint, TierState::Busy, false),
            (EngineKind::Embedded, TierState::Ready, false),
            (EngineKind::Embedded, TierState::Busy, true),
        ] {
            let other = TierStatus {
                engine,
                ..TierStatus::new(TierId::new("primary").unwrap(), state)
            };
            let tiers = [TierStatus::new(fast.clone(), TierState::Ready), other];
            let (is, unloads_at) = activity(&tiers, &fast);
            assert_eq!((is, unloads_at), (is_busy, None), "{engine:?} {state:?}");
        }
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

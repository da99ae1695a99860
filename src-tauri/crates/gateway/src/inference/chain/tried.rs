//! The failures of a chain's steps.

use crate::http::error::{for_seconds, seconds_of};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::json;
use std::{sync::Arc, time::Duration};
use tierbar_core::{
    Code, Error, TierId,
    queue::{Setback, setback},
};

/// The steps of one request. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Tried(Arc<Mutex<Log>>);

#[derive(Debug, Default)]
struct Log {
    steps: Vec<Step>,
    /// The first step, and the one that answers in its place.
    fallback: Option<(TierId, TierId)>,
    /// What came of the triage.
    triage: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Step {
    tier: TierId,
    /// `None`: it was passed over.
    code: Option<Code>,
    why: String,
    /// Seconds in which it will not answer either.
    #[serde(skip)]
    wait: Option<u64>,
    /// It may answer later.
    #[serde(skip)]
    may_pass: bool,
    #[serde(skip)]
    error: Option<Error>,
}

impl Tried {
    pub(super) fn failed(&self, tier: &TierId, error: Error) {
        self.0.lock().steps.push(Step {
            tier: tier.clone(),
            code: Some(error.code),
            why: error.message.clone(),
            may_pass: setback(error.code) != Setback::Final,
            wait: seconds_of(&error),
            error: Some(error),
        });
    }

    pub(super) fn passed_over(&self, tier: &TierId, why: String, wait: Option<u64>) {
        self.0.lock().steps.push(Step {
            tier: tier.clone(),
            code: None,
            why,
            wait,
            may_pass: true,
            error: None,
        });
    }

    /// Nor will it be cheaper later.
    pub(super) fn too_dear(&self, tier: &TierId, why: String) {
        self.0.lock().steps.push(Step {
            tier: tier.clone(),
            code: None,
            why,
            wait: None,
            may_pass: false,
            error: None,
        });
    }

    /// Whether any step may answer later what none answers now.
    pub(super) fn may_pass(&self) -> bool {
        let log = self.0.lock();
        log.steps.is_empty() || log.steps.iter().any(|step| step.may_pass)
    }

    pub(super) fn fell_back(&self, first: &TierId, answers: &TierId) {
        self.0.lock().fallback = Some((first.clone(), answers.clone()));
    }

    pub(super) fn note_triage(&self, words: String) {
        self.0.lock().triage = Some(words);
    }

    pub(super) fn triage(&self) -> Option<String> {
        self.0.lock().triage.clone()
    }

    pub(super) fn steps(&self) -> Vec<Step> {
        self.0.lock().steps.clone()
    }

    pub(super) fn fallback(&self) -> Option<TierId> {
        let log = self.0.lock();
        log.fallback.as_ref().map(|(first, _)| first.clone())
    }

    /// The steps that have not answered, each with its error, or with none if it was passed over.
    pub(super) fn codes(&self) -> Vec<(TierId, Option<Code>)> {
        let log = self.0.lock();
        let steps = log.steps.iter();
        steps.map(|step| (step.tier.clone(), step.code)).collect()
    }

    /// Why no step answered. A chain of one step has that step's error.
    pub(super) fn error(&self, chain: &TierId, late: Option<Duration>) -> Error {
        let log = self.0.lock();
        if let ([only], None) = (&*log.steps, late)
            && let Some(error) = &only.error
        {
            return error.clone();
        }
        let reasons = log
            .steps
            .iter()
            .map(|step| format!("{}: {}", step.tier, step.why));
        let reasons: Vec<_> = reasons.collect();
        let (code, begin) = match late {
            Some(time) => (
                Code::WorkerTimeout,
                format!(
                    "no step of {chain} gave a first token in {} s",
                    time.as_secs()
                ),
            ),
            None => (
                refusal(&log.steps),
                format!("no step of {chain} could answer"),
            ),
        };
        let message = if reasons.is_empty() {
            begin
        } else {
            format!("{begin}: {}", reasons.join("; "))
        };
        let error = Error::new(code, message)
            .hint("try again later, or add a step to the chain in config.toml")
            .detail("tried", json!(log.steps));
        // Known only if each step says it: one that does not may answer sooner.
        let waits: Option<Vec<u64>> = log.steps.iter().map(|step| step.wait).collect();
        match waits.and_then(|waits| waits.into_iter().min()) {
            Some(seconds) => for_seconds(error, seconds),
            None => error,
        }
    }
}

/// What all of them find wrong with the request is its client's to mend.
fn refusal(steps: &[Step]) -> Code {
    let last = steps.iter().rev().find_map(|step| step.code);
    match last.filter(|_| steps.iter().all(|step| !step.may_pass)) {
        Some(code) => code,
        None => Code::Unreachable,
    }
}

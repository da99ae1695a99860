//! The failures of a chain's steps.

use crate::{
    error::{for_seconds, seconds_of},
    metrics::BudgetOverrun,
};
use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;
use serde_json::json;
use std::{sync::Arc, time::Duration};
use tierbar_core::{
    Code, Error, TierId,
    queue::{Setback, setback},
};

/// The steps of one request. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct TriedSteps(Arc<Mutex<Log>>);

#[derive(Debug, Default)]
pub(super) struct Log {
    /// Those that have not answered.
    pub(super) steps: Vec<Step>,
    /// The first step, if another answers in its place.
    pub(super) fallback: Option<TierId>,
    /// What came of the triage.
    pub(super) triage: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Step {
    pub(super) tier: TierId,
    /// `None`: it was passed over.
    pub(super) code: Option<Code>,
    why: String,
    /// Seconds in which it will not answer either.
    #[serde(skip)]
    wait: Option<u64>,
    /// It may answer later.
    #[serde(skip)]
    may_pass: bool,
    #[serde(skip)]
    error: Option<Error>,
    /// The chain's budget does not allow it.
    #[serde(skip)]
    spent: Option<BudgetOverrun>,
}

impl Step {
    /// One that is passed over, and will not answer later.
    fn new(tier: &TierId, why: String) -> Self {
        Self {
            tier: tier.clone(),
            code: None,
            why,
            wait: None,
            may_pass: false,
            error: None,
            spent: None,
        }
    }
}

/// Why a step may cost too much.
#[derive(Debug)]
pub(super) struct ExcessCost {
    pub(super) why: String,
    /// It is the chain's budget, which later allows it again.
    pub(super) spent: Option<BudgetOverrun>,
}

impl From<String> for ExcessCost {
    fn from(why: String) -> Self {
        Self { why, spent: None }
    }
}

impl From<BudgetOverrun> for ExcessCost {
    fn from(spent: BudgetOverrun) -> Self {
        Self {
            why: spent.to_string(),
            spent: Some(spent),
        }
    }
}

impl TriedSteps {
    pub(super) fn failed(&self, tier: &TierId, error: Error) {
        let step = Step {
            code: Some(error.code),
            may_pass: setback(error.code) != Setback::Final,
            wait: seconds_of(&error),
            ..Step::new(tier, error.message.clone())
        };
        let error = Some(error);
        self.0.lock().steps.push(Step { error, ..step });
    }

    pub(super) fn passed_over(&self, tier: &TierId, why: String, wait: Option<u64>) {
        self.0.lock().steps.push(Step {
            wait,
            may_pass: true,
            ..Step::new(tier, why)
        });
    }

    /// Nor will it be cheaper soon.
    pub(super) fn too_dear(&self, tier: &TierId, ExcessCost { why, spent }: ExcessCost) {
        let step = Step::new(tier, why);
        self.0.lock().steps.push(Step { spent, ..step });
    }

    /// Whether any step may answer later what none answers now.
    pub(super) fn may_pass(&self) -> bool {
        let log = self.0.lock();
        log.steps.is_empty() || log.steps.iter().any(|step| step.may_pass)
    }

    pub(super) fn log(&self) -> MutexGuard<'_, Log> {
        self.0.lock()
    }

    /// Why no step answered. A chain of one step has that step's error.
    pub(super) fn error(&self, chain: &TierId, late: Option<Duration>) -> Error {
        let log = self.0.lock();
        if let ([only], None) = (&*log.steps, late)
            && let Some(error) = &only.error
        {
            return error.clone();
        }
        if late.is_none()
            && let Some(spent) = budget_overrun(&log.steps)
        {
            return over_budget(chain, spent).detail("tried", json!(log.steps));
        }
        let steps = log.steps.iter();
        let reasons: Vec<_> = steps
            .map(|step| format!("{}: {}", step.tier, step.why))
            .collect();
        let (code, begin) = match late.map(|time| time.as_secs()) {
            Some(seconds) => (
                Code::WorkerTimeout,
                format!("no step of {chain} gave a first token in {seconds} s"),
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

/// What the chain has spent, if money alone kept each step from answering.
fn budget_overrun(steps: &[Step]) -> Option<&BudgetOverrun> {
    let is_too_dear = |step: &Step| step.code.is_none() && !step.may_pass;
    let all = steps.iter().all(is_too_dear);
    let mut spent = steps.iter().filter_map(|step| step.spent.as_ref());
    spent.next().filter(|_| all)
}

fn over_budget(chain: &TierId, spent: &BudgetOverrun) -> Error {
    let BudgetOverrun {
        cost,
        spent,
        budget,
        resets,
        seconds,
    } = spent;
    let message = format!(
        "the chain {chain} has spent {spent} of its budget of {budget}, and this request may cost up to {cost}"
    );
    let error = Error::new(Code::BudgetSpent, message)
        .detail("spent", f64::from(*spent))
        .detail("budget", f64::from(budget.amount))
        .detail("cost", f64::from(*cost))
        .detail("resets", resets.to_string());
    if *cost > budget.amount {
        return error.hint("set a smaller max_tokens, or raise the chain's budget");
    }
    let hint = format!(
        "the budget resets on {resets}; until then, raise it, set a smaller max_tokens, or add a tier of this machine to the chain"
    );
    for_seconds(error, *seconds).hint(hint)
}

/// What all of them find wrong with the request is its client's to mend.
fn refusal(steps: &[Step]) -> Code {
    let last = steps.iter().rev().find_map(|step| step.code);
    let last = last.filter(|_| steps.iter().all(|step| !step.may_pass));
    last.unwrap_or(Code::Unreachable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierbar_core::config::{ChainBudget, Dollars};

    fn tier(name: &str) -> TierId {
        TierId::new(name).unwrap()
    }

    fn of_month(cost: f64) -> BudgetOverrun {
        BudgetOverrun {
            cost: Dollars::try_from(cost).unwrap(),
            spent: Dollars::try_from(4.98).unwrap(),
            budget: ChainBudget::try_from("5 USD a month".to_owned()).unwrap(),
            resets: jiff::civil::date(2026, 12, 1),
            seconds: 60,
        }
    }

    #[test]
    fn a_spent_budget_has_its_own_code_and_figures() {
        let tried = TriedSteps::default();
        tried.too_dear(&tier("unpriced"), "it has no price".to_owned().into());
        tried.too_dear(&tier("sonnet"), of_month(0.04).into());
        let error = tried.error(&tier("night"), None);
        assert_eq!(error.code, Code::BudgetSpent);
        assert_eq!(
            error.message,
            "the chain night has spent $4.98 of its budget of $5.00 a month, and this request may cost up to $0.04"
        );
        assert!(error.hint.as_ref().unwrap().contains("2026-12-01"));
        assert_eq!(error.details["spent"], 4.98);
        assert_eq!(error.details["budget"], 5.0);
        assert_eq!(error.details["resets"], "2026-12-01");
        assert_eq!(error.details["tried"][1]["tier"], "sonnet");
        assert_eq!(seconds_of(&error), Some(60));
        // What costs more than the whole budget does not fit later either.
        let tried = TriedSteps::default();
        tried.too_dear(&tier("sonnet"), of_month(6.0).into());
        assert_eq!(seconds_of(&tried.error(&tier("night"), None)), None);
    }

    #[test]
    fn a_step_that_failed_otherwise_says_so() {
        let tried = TriedSteps::default();
        tried.too_dear(&tier("sonnet"), of_month(0.04).into());
        tried.failed(&tier("primary"), Error::new(Code::Paused, "paused"));
        let error = tried.error(&tier("night"), None);
        assert_eq!(error.code, Code::Unreachable);
        assert!(error.message.contains("budget of $5.00 a month is spent"));
        let late = Some(Duration::from_secs(1));
        assert_eq!(tried.error(&tier("night"), late).code, Code::WorkerTimeout);
        // Only the price of one request is too high.
        let tried = TriedSteps::default();
        tried.too_dear(&tier("sonnet"), "it costs too much".to_owned().into());
        assert_eq!(tried.error(&tier("night"), None).code, Code::Unreachable);
    }
}

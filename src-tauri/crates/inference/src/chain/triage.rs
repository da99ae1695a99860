//! Whether a chain's request needs a cloud: by a rule over what a model of this machine says of the user's last message.
//!
//! Nothing of it may keep a request from its answer: what fails or takes too long leaves the chain as it is.

use crate::{
    CHAT, Inference,
    exams::{self, ExamResult, Examination},
    request::Request,
    send,
};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use tierbar_chats::lenient;
use tierbar_core::{
    Error, ModelId, TierId, TierState,
    judgment::{Judgment, TRIAGE_WAIT},
    lease::Purpose,
    policy::Alarm,
    status::{EngineKind, TierStatus},
};
use tierbar_routing::{Level, Traits};
use tierbar_tasks::triage::{
    CloudNeed, Triage,
    exam::{PROBES, TriageExam},
    question,
};
use tokio::time::timeout;

impl ExamResult for TriageExam {
    const JUDGMENT: Judgment = Judgment::Triage;
    const OF: usize = PROBES.len();

    fn score(&self) -> (usize, bool) {
        (self.right, self.is_passed())
    }

    fn milliseconds(&self) -> Option<u64> {
        Some(self.milliseconds)
    }

    /// Only what is slow may be so because the machine had other work.
    fn lasts(&self) -> bool {
        !self.is_passed() || self.time() <= TRIAGE_WAIT
    }
}

/// What comes of a triage.
pub(super) struct TriageOutcome {
    /// The message needs no cloud. Otherwise the chain goes on in its order.
    pub(super) stays_here: bool,
    /// In one clause of ASCII.
    pub(super) why: String,
}

pub(super) async fn triage(inference: &Arc<Inference>, request: &Request) -> TriageOutcome {
    let traits = Traits::of(request.content.fields());
    let outcome = |stays_here, why| TriageOutcome { stays_here, why };
    if let Some(why) = unfit_reason(request, &traits) {
        return outcome(false, format!("not triaged: {why}"));
    }
    if let Some(need) = CloudNeed::of_greeting(&traits.text) {
        return outcome(true, need.because.to_owned());
    }
    let tiers = inference.tiers.snapshot();
    let Some(tier) = triage_tier(inference, &tiers) else {
        let why = "not triaged: no tier of this machine is free for it";
        return outcome(false, why.to_owned());
    };
    let (id, text) = (&tier.id, &traits.text);
    let read = async {
        if let Some(why) = unproven_reason(inference, tier).await {
            return Err(why);
        }
        if tier.state == TierState::Stopped {
            load(inference, id);
            return Err(format!("not triaged: {id} is loaded for the next message"));
        }
        let answer = ask(inference, id, text).await;
        let why = "an unexpected answer".to_owned();
        let triage = answer.and_then(|triage| triage.ok_or(why));
        triage.map_err(|why| format!("not triaged: {id}: {why}"))
    };
    let wait = inference.auto.triage_wait;
    let Ok(read) = timeout(wait, read).await else {
        let seconds = wait.as_secs();
        let why = format!("not triaged: {id}: no answer within {seconds} s");
        return outcome(false, why);
    };
    let triage = match read {
        Ok(triage) => triage,
        Err(why) => return outcome(false, why),
    };
    let (need, kind) = (triage.cloud_need(text), triage.kind.as_str());
    match need.by_rule && !need.needed {
        true => outcome(true, format!("{kind}, by {id}: {}", need.because)),
        false => outcome(false, format!("{kind}, by {id}")),
    }
}

/// Why the user's last message does not show what a request needs.
fn unfit_reason(request: &Request, traits: &Traits) -> Option<&'static str> {
    let fields = request.content.fields();
    let last = fields["messages"].as_array().and_then(|all| all.last());
    let is_users = last.is_some_and(|last| last["role"] == "user");
    let reasons = [
        (request.path != CHAT, "the request is no chat"),
        (traits.tools, "the request has tools"),
        (
            traits.images || traits.sound,
            "the request has images or sound",
        ),
        // No model of this machine reads them.
        (request.content.has_files(), "the request has files"),
        (traits.thinks, "the request asks for thinking"),
        (super::mark::is_bound(fields), "the answer has a fixed form"),
        (
            !is_users || traits.text.trim().is_empty(),
            "the last message is not the user's",
        ),
    ];
    reasons
        .into_iter()
        .find_map(|(is_so, why)| is_so.then_some(why))
}

/// The smallest loaded tier of this machine that `auto` chooses from; without one, `fast`, which then loads.
fn triage_tier<'a>(inference: &Inference, tiers: &'a [TierStatus]) -> Option<&'a TierStatus> {
    let here = tiers.iter().filter(|tier| {
        let runs = tier.engine != EngineKind::Endpoint && tier.model.is_some();
        runs && Level::of(&tier.id).is_some()
    });
    let mut here: Vec<_> = here.collect();
    here.sort_by_key(|tier| Level::of(&tier.id));
    let is_loaded = |tier: &&&TierStatus| matches!(tier.state, TierState::Ready | TierState::Busy);
    if let Some(loaded) = here.iter().find(is_loaded) {
        return Some(loaded);
    }
    let may_load = inference.services.status().guard.alarm == Alarm::None
        && tiers.iter().all(|tier| {
            tier.engine == EngineKind::Endpoint
                || matches!(tier.state, TierState::Stopped | TierState::Failed)
        });
    let fast = here.first()?;
    let is_fast = Level::of(&fast.id) == Some(Level::Simple) && fast.state == TierState::Stopped;
    (may_load && is_fast).then_some(*fast)
}

/// Has a tier loaded, for which no request waits.
fn load(inference: &Arc<Inference>, tier: &TierId) {
    let (inference, tier) = (Arc::clone(inference), tier.clone());
    tokio::spawn(async move {
        let leased = inference.tiers.lease_for(&tier, Purpose::Brief);
        if let Some(Err(error)) = inference.closing.run_until_cancelled(leased).await {
            tracing::info!("{tier} was not loaded for triage: {}", error.message);
        }
    });
}

/// Why the tier's model may not sort messages. The first request for it while it is loaded begins its examination.
async fn unproven_reason(inference: &Arc<Inference>, tier: &TierStatus) -> Option<String> {
    let id = &tier.id;
    let model = tier.model.as_ref()?;
    let Some(exam) = exams::result::<TriageExam>(inference, model).await else {
        match tier.state {
            TierState::Stopped => load(inference, id),
            _ => begin_exam(inference, id, model),
        }
        return Some(format!(
            "not triaged: the model of {id} has not passed the triage test"
        ));
    };
    failure_reason(exam, id, inference.auto.triage_wait)
}

/// Why a model that has been examined may not sort messages for a chain that waits for so long.
fn failure_reason(exam: TriageExam, tier: &TierId, wait: Duration) -> Option<String> {
    let (right, of, seconds) = (exam.right, PROBES.len(), exam.time().as_secs_f64());
    if !exam.is_passed() {
        let why = format!("the model of {tier} sorted {right} of {of} messages correctly");
        return Some(format!("triage is off: {why}"));
    }
    (exam.time() > wait)
        .then(|| format!("triage is off: the model of {tier} takes {seconds:.1} s for a message"))
}

/// Has the tier's model sort messages of known types in the background.
pub fn begin_exam(inference: &Arc<Inference>, tier: &TierId, model: &ModelId) {
    exams::begin(inference, tier, model, examine);
}

async fn examine(examination: Arc<Examination>) -> Result<TriageExam, Error> {
    let mut answers = Vec::with_capacity(PROBES.len());
    for (message, _) in PROBES {
        let (answer, time) = examination.ask(question(message)).await?;
        let triage = answer.as_ref().and_then(triage_of);
        answers.push((triage.map(|triage| triage.kind), time));
    }
    Ok(TriageExam::from_answers(&answers))
}

/// The model's triage, `None` for an answer that cannot be read, or why there is none, in a few words.
async fn ask(
    inference: &Inference,
    tier: &TierId,
    message: &str,
) -> Result<Option<Triage>, String> {
    let lease = inference.tiers.lease_for(tier, Purpose::Brief).await;
    let lease = lease.map_err(|error| error.message)?;
    let answer = send::ask(inference, &*lease, question(message)).await?;
    Ok(triage_of(&answer))
}

fn triage_of(answer: &Value) -> Option<Triage> {
    let text = answer["choices"][0]["message"]["content"].as_str()?;
    Triage::from_answer(&lenient::object(text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_waits_for_no_model_that_is_wrong_or_slow() {
        let reason = |right, milliseconds| {
            let exam = TriageExam {
                right,
                milliseconds,
            };
            failure_reason(exam, &TierId::new("fast").unwrap(), TRIAGE_WAIT)
        };
        assert_eq!(reason(12, 1000), None);
        let badly = "triage is off: the model of fast sorted 7 of 16 messages correctly";
        assert_eq!(reason(7, 1400).as_deref(), Some(badly));
        let slowly = "triage is off: the model of fast takes 1.4 s for a message";
        assert_eq!(reason(16, 1400).as_deref(), Some(slowly));
        // The machine may have had other work.
        let lasts = [(16, 1000), (16, 1001), (7, 1400)].map(|(right, milliseconds)| {
            let exam = TriageExam {
                right,
                milliseconds,
            };
            exam.lasts()
        });
        assert_eq!(lasts, [true, false, true]);
    }
}

//! Whether a chain's request needs a cloud: by a rule over what a model of this machine says of the user's last message.
//!
//! Nothing of it may keep a request from its answer: what fails or takes too long leaves the chain as it is.

use crate::{CHAT, Inference, request::Request, send};
use serde_json::Value;
use std::time::Duration;
use tierbar_core::{
    TierId, TierState,
    policy::Alarm,
    status::{EngineKind, TierStatus},
};
use tierbar_routing::{Level, Traits};
use tierbar_tasks::{
    lenient,
    triage::{CloudNeed, Triage, question},
};
use tokio::time::timeout;

/// How long the chain waits for it, a load included.
const BUDGET: Duration = Duration::from_secs(10);

/// What comes of a triage.
pub(super) struct TriageOutcome {
    /// The message needs no cloud. Otherwise the chain goes on in its order.
    pub(super) stays_here: bool,
    /// In one clause of ASCII.
    pub(super) why: String,
}

pub(super) async fn triage(inference: &Inference, request: &Request) -> TriageOutcome {
    let fields = request.content.fields();
    let traits = Traits::of(fields);
    let outcome = |stays_here, why| TriageOutcome { stays_here, why };
    if let Some(why) = unfit_reason(request.path, fields, &traits) {
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
    let read = timeout(BUDGET, ask(inference, id, text)).await;
    let late = |_| Err(format!("no answer within {} s", BUDGET.as_secs()));
    let triage = match read.unwrap_or_else(late) {
        Ok(triage) => triage,
        Err(why) => return outcome(false, format!("not triaged: {id}: {why}")),
    };
    let (need, kind) = (triage.cloud_need(text), triage.kind.as_str());
    match need.by_rule && !need.needed {
        true => outcome(true, format!("{kind}, by {id}: {}", need.because)),
        false => outcome(false, format!("{kind}, by {id}")),
    }
}

/// Why the user's last message does not show what a request needs.
fn unfit_reason(path: &str, fields: &Value, traits: &Traits) -> Option<&'static str> {
    let last = fields["messages"].as_array().and_then(|all| all.last());
    let is_users = last.is_some_and(|last| last["role"] == "user");
    let reasons = [
        (path != CHAT, "the request is no chat"),
        (traits.tools, "the request has tools"),
        (
            traits.images || traits.sound,
            "the request has images or sound",
        ),
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

/// The model's triage, or why there is none, in a few words.
async fn ask(inference: &Inference, tier: &TierId, message: &str) -> Result<Triage, String> {
    let lease = inference.tiers.lease(tier).await;
    let lease = lease.map_err(|error| error.message)?;
    let answer = send::ask(inference, &*lease, question(message)).await?;
    let text = answer["choices"][0]["message"]["content"].as_str();
    let triage = text.and_then(lenient::object);
    let triage = triage.and_then(|answer| Triage::read(&answer));
    triage.ok_or_else(|| "an unexpected answer".to_owned())
}

//! Whether a chain's request needs a cloud: by a rule over what a model of this machine says of the user's last message.
//!
//! It calls the worker itself, as the classifier of `auto` does: its question is no answer to a client. Nothing of it may keep
//! a request from its answer: what fails or takes too long leaves the chain as it is.

use crate::{CHAT, Inference, content::Content, relay::UpstreamRequest, send::send};
use http::HeaderMap;
use serde_json::Value;
use std::{fmt, time::Duration};
use tierbar_core::{
    Error, TierId, TierState, json,
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
const ANSWER_LIMIT: usize = 1 << 20;

/// What comes of a triage, in one clause of ASCII.
pub(super) enum TriageOutcome {
    /// The message needs no cloud.
    StaysHere(String),
    /// The chain goes on in its order.
    GoesOn(String),
}

impl fmt::Display for TriageOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StaysHere(why) => write!(f, "{why}, so this machine answers first"),
            Self::GoesOn(why) => f.write_str(why),
        }
    }
}

pub(super) async fn triage(inference: &Inference, request: &UpstreamRequest) -> TriageOutcome {
    let fields = request.content.fields();
    let traits = Traits::of(fields);
    if let Some(why) = unfit_reason(request.path, fields, &traits) {
        return TriageOutcome::GoesOn(format!("not triaged: {why}"));
    }
    if let Some(need) = CloudNeed::of_greeting(&traits.text) {
        return TriageOutcome::StaysHere(need.because.to_owned());
    }
    let tiers = inference.tiers.snapshot();
    let Some(tier) = triage_tier(inference, &tiers) else {
        return TriageOutcome::GoesOn(
            "not triaged: no tier of this machine is free for it".to_owned(),
        );
    };
    let read = match timeout(BUDGET, ask(inference, &tier.id, &traits.text)).await {
        Ok(read) => read,
        Err(_) => Err(format!("no answer within {} s", BUDGET.as_secs())),
    };
    match read {
        Ok(triage) => {
            let need = triage.cloud_need(&traits.text);
            let kind = triage.kind.as_str();
            if need.by_rule && !need.needed {
                TriageOutcome::StaysHere(format!("{kind}, by {}: {}", tier.id, need.because))
            } else {
                TriageOutcome::GoesOn(format!("{kind}, by {}", tier.id))
            }
        }
        Err(why) => TriageOutcome::GoesOn(format!("not triaged: {}: {why}", tier.id)),
    }
}

/// Why the user's last message does not show what a request needs.
fn unfit_reason(path: &str, fields: &Value, traits: &Traits) -> Option<&'static str> {
    let last = fields["messages"].as_array().and_then(|all| all.last());
    if path != CHAT {
        Some("the request is no chat")
    } else if traits.tools {
        Some("the request has tools")
    } else if traits.images || traits.sound {
        Some("the request has images or sound")
    } else if traits.thinks {
        Some("the request asks for thinking")
    } else if super::mark::is_bound(fields) {
        Some("the answer has a fixed form")
    } else if last.is_none_or(|last| last["role"] != "user") || traits.text.trim().is_empty() {
        Some("the last message is not the user's")
    } else {
        None
    }
}

/// The smallest loaded tier of this machine that `auto` chooses from; without one, `fast`, which then loads.
fn triage_tier<'a>(inference: &Inference, tiers: &'a [TierStatus]) -> Option<&'a TierStatus> {
    let here = tiers.iter().filter(|tier| {
        let runs = tier.engine != EngineKind::Endpoint && tier.model.is_some();
        runs && Level::of(&tier.id).is_some()
    });
    let mut here: Vec<_> = here.collect();
    here.sort_by_key(|tier| Level::of(&tier.id));
    let is_loaded = |tier: &TierStatus| matches!(tier.state, TierState::Ready | TierState::Busy);
    if let Some(loaded) = here.iter().find(|tier| is_loaded(tier)) {
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

/// # Errors
/// Why there is no answer, in a few words.
async fn ask(inference: &Inference, tier: &TierId, message: &str) -> Result<Triage, String> {
    let words = |error: Error| error.message;
    let lease = inference.tiers.lease(tier).await.map_err(words)?;
    let (content, _) = Content::of(question(message)).map_err(words)?;
    let (headers, remote) = (HeaderMap::new(), &inference.remote);
    let posted = send(lease.endpoint(), CHAT, content, &headers, remote, None);
    let mut upstream = posted.await.map_err(|broken| broken.to_string())?;
    let answer = upstream.whole(ANSWER_LIMIT).await;
    let answer = answer.map_err(|broken| broken.to_string())?;
    let answer: Value = json::read(&answer).map_err(|error| error.to_string())?;
    let text = answer["choices"][0]["message"]["content"].as_str();
    let triage = text.and_then(lenient::object);
    let triage = triage.and_then(|answer| Triage::read(&answer));
    triage.ok_or_else(|| "an unexpected answer".to_owned())
}

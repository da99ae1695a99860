//! What the policy's owner does by itself: when to call the policy again, and which tiers to request.

use super::{Alarm, Phase, Stance, State, TierView, WaitingRequest};
use crate::{TierId, TierKind, lease::Purpose};
use std::time::Duration;

/// Returns the next time at which [`super::plan`] may have steps without another event; `None` if there is none.
pub fn next_look(state: &State) -> Option<Duration> {
    let (queue, tiers) = (state.queue.iter(), state.tiers.iter());
    let is_for = |tier: &TierView| {
        let mut those = state.queue.iter().filter(|waiting| waiting.tier == tier.id);
        those.any(|waiting| waiting.purpose == Purpose::Brief)
    };
    let brief = tiers.clone().filter(|tier| is_for(tier));
    let times = queue
        .map(|waiting| state.patience_ends(waiting))
        .chain(tiers.filter_map(|tier| state.idles_out_at(tier)))
        .chain(brief.map(|tier| tier.brief_after));
    times.filter(|at| *at > state.now).min()
}

/// Returns a tier to load without a request: a pinned one, or the home tier after another was unloaded because it was idle.
/// The owner queues a preload for it ([`super::WaitingRequest::ahead`]), and withdraws it when this no longer applies.
pub fn tier_to_preload(state: &State) -> Option<TierId> {
    let queued = |tier: &TierView| state.queue.iter().any(|waiting| waiting.tier == tier.id);
    let may = |tier: &TierView| {
        tier.phase == Phase::Stopped && !tier.rests && tier.stop.is_none() && !queued(tier)
    };
    if state.stance != Stance::Open || state.alarm != Alarm::None {
        return None;
    }
    let mut tiers = state.tiers.iter().filter(|tier| may(tier));
    let generative = |tier: &TierView| tier.kind == TierKind::Generative;
    let is_home = |tier: &&TierView| generative(tier) && Some(&tier.id) == state.home.as_ref();
    let away = || {
        let mut loaded = state.tiers.iter();
        let empty = loaded.all(|tier| tier.phase == Phase::Stopped || !generative(tier));
        let others = state.tiers.iter().filter(|tier| !is_home(tier));
        empty && state.queue.is_empty() && others.into_iter().any(|tier| tier.idled_out)
    };
    let pinned = tiers.clone().find(|tier| tier.pinned);
    let back = pinned.or_else(|| tiers.find(is_home).filter(|_| away()));
    back.map(|tier| tier.id.clone())
}

/// Returns which of its `own` requests, those queued for [`tier_to_preload`] tiers, to withdraw because they no longer apply.
pub fn withdrawn_requests(state: &State, own: &[u64]) -> Vec<u64> {
    let is_own = |waiting: &WaitingRequest| own.contains(&waiting.request);
    let mut rest = state.clone();
    rest.queue.retain(|waiting| !is_own(waiting));
    let mut gone = Vec::new();
    for waiting in state.queue.iter().filter(|waiting| is_own(waiting)) {
        if tier_to_preload(&rest).as_ref() == Some(&waiting.tier) {
            rest.queue.push(waiting.clone());
        } else {
            gone.push(waiting.request);
        }
    }
    gone
}

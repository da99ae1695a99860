//! What the policy's owner does by itself: when it looks again, and which tier it asks for.

use super::{ALARM_PATIENCE, Alarm, Phase, State, TierView};
use crate::TierId;
use std::time::Duration;

/// The next moment at which [`super::plan`] may find something due without an event before; `None` if there is none.
#[must_use]
pub fn next_look(state: &State) -> Option<Duration> {
    let patience = match state.alarm {
        Alarm::None => state.patience,
        _ => ALARM_PATIENCE,
    };
    let waiting = state.queue.iter().map(|waiting| waiting.since + patience);
    let idle = state.tiers.iter().filter(|tier| !tier.pinned);
    let idle = idle.filter_map(|tier| Some(tier.idle_since? + tier.keep?));
    waiting.chain(idle).filter(|at| *at > state.now).min()
}

/// A tier that ought to be loaded although nobody asks for it: a pinned one, or the home tier after another has idled out.
/// Its owner queues for it, [`super::Waiting::ahead`].
#[must_use]
pub fn returning(state: &State) -> Option<TierId> {
    let queued = |tier: &TierView| state.queue.iter().any(|waiting| waiting.tier == tier.id);
    let may = |tier: &TierView| {
        tier.phase == Phase::Stopped && !tier.rests && tier.stop.is_none() && !queued(tier)
    };
    if state.defers || state.alarm != Alarm::None {
        return None;
    }
    let mut tiers = state.tiers.iter().filter(|tier| may(tier));
    let is_home = |tier: &&TierView| Some(&tier.id) == state.home.as_ref();
    let away = || {
        let empty = state.tiers.iter().all(|tier| tier.phase == Phase::Stopped);
        let others = state.tiers.iter().filter(|tier| !is_home(tier));
        empty && state.queue.is_empty() && others.into_iter().any(|tier| tier.idled_out)
    };
    let pinned = tiers.clone().find(|tier| tier.pinned);
    let back = pinned.or_else(|| tiers.find(is_home).filter(|_| away()));
    back.map(|tier| tier.id.clone())
}

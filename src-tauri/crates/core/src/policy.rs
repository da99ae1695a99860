//! The memory policy: which tier is loaded, ended or granted next, as a pure function of the current state.
//!
//! [`plan`] is level-triggered: the owner of the tiers calls it after every event and at the time that [`next_look`]
//! returns, carries out the steps, and calls it again with the changed state until there are none. It keeps no state
//! between calls.
//!
//! Its rules:
//! - The plans of the tiers that hold memory never sum over the budget, and never more than `max_loaded` generative tiers
//!   hold any. Embedders use what the generative tiers' plans leave to their slot ([`Holdings`]).
//! - A generative tier is never ended for an embedder. An idle embedder is the first that ends for a generative tier, ends at
//!   any alarm, and at the latest when a generative tier has idled out.
//! - Nothing is loaded while another tier starts or stops: its memory must be back first. After that wait was given up,
//!   only loads that fit the available memory happen.
//! - A leased tier is never ended without [`StopRequest::Force`] or [`Alarm::Critical`].
//! - Waiters are served oldest first, except that requests for a loaded tier may pass an older one for another tier until
//!   that has waited for [`State::patience`]. Then the tier that must end for it grants nothing more, except brief requests
//!   while it answers longer ones: one at a time, and half of the time.
//! - Background requests come last, and their leases are taken back for a request that has waited for
//!   [`State::patience`]. After [`BACKGROUND_PATIENCE`] they wait as any other.
//! - No more tiers are ended than needed: idle ones first, the least recently used of them first.
//! - A pinned tier is never evicted for a request; only an alarm or a [`Stance`] that keeps nothing loaded ends it. A
//!   request that does not fit beside it is refused.
//! - Every waiter is granted or refused eventually, as long as leases and loads end.

mod holdings;
mod look;
mod tiers;

pub use holdings::{Holding, Holdings, Pins, pins};
pub use look::{next_look, tier_to_preload, withdrawn_requests};

use crate::{TierId, TierKind, budget::Budget, lease::Purpose, reclaim};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tiers::Tiers;
use utoipa::ToSchema;

/// How long an idle tier stays at [`Stance::Quiet`]: longer than people think between two messages.
const QUIET_KEEP: Duration = Duration::from_secs(60);

/// How long a request waits for an alarm to end.
pub const ALARM_PATIENCE: Duration = Duration::from_secs(60);

/// How long all others go before a background request: longer than people use one tier without a pause.
pub const BACKGROUND_PATIENCE: Duration = Duration::from_secs(300);

/// Everything that a decision depends on. Times count from any start, by a monotonic clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    pub now: Duration,
    pub budget: Budget,
    /// How long newer requests may pass an older one.
    pub patience: Duration,
    pub alarm: Alarm,
    /// When it was raised.
    pub alarm_since: Duration,
    pub stance: Stance,
    /// The tier to load again when another was unloaded because it was idle.
    pub home: Option<TierId>,
    /// Memory of an ended tier that did not come back in time.
    pub missing: Option<MissingTierMemory>,
    pub tiers: Vec<TierView>,
    /// Requests without a lease, oldest first.
    pub queue: Vec<WaitingRequest>,
}

/// Memory that should have been freed and was not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingTierMemory {
    pub of: TierId,
    pub memory: reclaim::MissingMemory,
}

/// How short the machine's memory is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Alarm {
    #[default]
    None,
    /// No request is admitted, and idle embedders are ended.
    Hold,
    /// Idle tiers are ended too.
    Unload,
    /// Leased tiers are ended as well.
    Critical,
}

/// How much of the machine models may use, by the user's settings and activity.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Stance {
    #[default]
    Open,
    /// Tiers load only on request.
    Defers,
    /// In addition, idle tiers are unloaded, even pinned ones.
    Quiet,
    /// Requests are refused; running answers finish.
    Paused,
}

/// One tier, as far as memory is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TierView {
    pub id: TierId,
    pub phase: Phase,
    pub kind: TierKind,
    /// What the tier uses while it holds memory, or would use when stopped. `None` until its model has been read; a tier
    /// without a plan is not loaded.
    pub plan_bytes: Option<u64>,
    /// Of them, those that are left to the embedder's slot.
    pub reserved_bytes: u64,
    /// Requests that use the tier now.
    pub leases: u32,
    /// Of them, brief ones.
    pub brief: u32,
    /// Of them, background ones that have not been taken back.
    pub background: u32,
    /// Before that time, no brief request passes an older one: the last had the tier for as long.
    pub brief_after: Duration,
    /// When it was last granted or became idle; larger is more recent. A counter, because clocks step. It does not change
    /// while one of several leases ends, or the draining tier would change with every release.
    pub last_used: u64,
    /// Since when a loaded tier has had no lease.
    pub idle_since: Option<Duration>,
    /// How long it stays loaded without a lease; `None` for always.
    pub keep: Option<Duration>,
    pub pinned: bool,
    /// It was unloaded because it was idle, and since then no tier was loaded, and none ended for another reason.
    pub idled_out: bool,
    /// It loads only on request: its last load failed, it crashed soon after, or it was stopped.
    pub rests: bool,
    pub stop: Option<StopRequest>,
}

/// Whether a process of the tier exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Stopped,
    Starting,
    Ready,
    Stopping,
}

/// A request to end the tier. Until it has ended, it grants nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopRequest {
    /// When its leases have ended.
    Drain,
    /// Now, even if it is leased.
    Force,
}

/// A request that waits for a tier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingRequest {
    pub request: u64,
    pub tier: TierId,
    pub since: Duration,
    pub purpose: Purpose,
    /// A preload: it may evict idle tiers only, and delays no request.
    pub ahead: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Start a stopped tier's process.
    Start(TierId),
    /// End a tier's process; with `force`, even if it is leased.
    Stop {
        tier: TierId,
        force: bool,
        why: UnloadReason,
    },
    /// Take back the tier's background leases.
    Revoke { tier: TierId, why: UnloadReason },
    /// Give the request a lease on its tier.
    Grant(u64),
    /// The request cannot have its tier.
    Refuse { request: u64, why: Refusal },
}

/// Why a tier is ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnloadReason {
    /// It was stopped on request.
    Requested,
    RoomFor(TierId),
    /// More is loaded than the budget holds.
    Budget,
    /// It was idle for this long.
    Idle(Duration),
    /// It was idle, and the stance keeps no idle tier.
    Stance(Stance),
    Alarm(Alarm),
}

impl UnloadReason {
    /// Returns whether the tier was ended only because it was idle.
    pub fn is_disuse(&self) -> bool {
        matches!(self, Self::Idle(_) | Self::Stance(_))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It does not fit beside these, which stay loaded.
    Pinned(Vec<TierId>),
    /// An embedder does not fit beside these, which are not ended for one.
    Slot(Vec<TierId>),
    /// Memory was short for longer than a request waits.
    Alarm(Alarm),
    Paused,
    /// It needs this many bytes, and memory of an ended tier is missing.
    Missing(MissingTierMemory, u64),
}

/// Returns whether a plan fits the budget when nothing else is loaded. One that does not is never started; the caller must
/// refuse its requests.
pub fn fits_alone(budget: &Budget, plan_bytes: u64) -> bool {
    budget.max_loaded > 0 && plan_bytes <= budget.total_bytes
}

/// Returns the steps that are due now, in order.
pub fn plan(state: &State) -> Vec<Step> {
    let mut tiers = Tiers::new(state);
    tiers.carry_out_stop_requests();
    tiers.heed_alarm();
    tiers.end_idle();
    // A lowered budget may already be exceeded.
    tiers.end_excess();
    if state.stance == Stance::Paused {
        tiers.refuse_all();
    } else if state.alarm == Alarm::None {
        let requests = || state.queue.iter().filter(|waiting| !waiting.ahead);
        for waiting in requests().filter(|waiting| !state.gives_way(waiting)) {
            tiers.serve(waiting);
        }
        for waiting in requests().filter(|waiting| state.gives_way(waiting)) {
            tiers.serve(waiting);
        }
        for waiting in state.queue.iter().filter(|waiting| waiting.ahead) {
            tiers.serve_ahead(waiting);
        }
    } else {
        tiers.refuse_the_late();
    }
    tiers.steps
}

impl State {
    /// Returns how long the tier stays loaded while idle; `None` for always.
    fn keep_of(&self, tier: &TierView) -> Option<Duration> {
        let keep = tier.keep.filter(|_| !tier.pinned);
        match self.stance {
            Stance::Open | Stance::Defers => keep,
            Stance::Quiet => Some(keep.map_or(QUIET_KEEP, |keep| keep.min(QUIET_KEEP))),
            Stance::Paused => Some(Duration::ZERO),
        }
    }

    /// Returns when the tier's idle time is over; `None` while it is leased and if it stays loaded.
    pub fn idles_out_at(&self, tier: &TierView) -> Option<Duration> {
        tier.idle_since
            .filter(|_| tier.phase == Phase::Ready)?
            .checked_add(self.keep_of(tier)?)
    }

    /// Returns when newer requests may no longer pass it.
    fn patience_ends(&self, waiting: &WaitingRequest) -> Duration {
        match (self.alarm, waiting.purpose) {
            (Alarm::None, Purpose::Background) => {
                waiting.since + BACKGROUND_PATIENCE.max(self.patience)
            }
            (Alarm::None, _) => waiting.since + self.patience,
            _ => waiting.since.max(self.alarm_since) + ALARM_PATIENCE,
        }
    }

    fn gives_way(&self, waiting: &WaitingRequest) -> bool {
        waiting.purpose == Purpose::Background && self.now < self.patience_ends(waiting)
    }
}

#[cfg(test)]
mod tests;

//! The memory policy: which tier is loaded, ended or granted next, as a pure function of what is true now.
//!
//! [`plan`] is level-triggered: the owner of the tiers calls it after every event and when [`next_look`] says so, carries
//! out the steps, tells the policy what they changed, and calls it again until there are none. It keeps nothing between two
//! calls.
//!
//! What it holds to:
//! - The plans of the tiers that hold memory never sum over the budget, and never more than `max_loaded` hold any.
//! - Nothing is loaded while another tier starts or stops: its memory must be back first. If that was given up, nothing is
//!   loaded that does not fit into what is available.
//! - A leased tier is never ended without [`StopWish::Force`] or [`Alarm::Critical`].
//! - Waiters are served oldest first, except that requests for a loaded tier may pass an older one for another tier until
//!   that has waited for [`State::patience`]. Then the tier that it needs ended grants nothing more.
//! - No more tiers are ended than needed: idle ones first, the least recently used of them first.
//! - A pinned tier is ended for nobody, short of an alarm or a [`Stance`] that lets nothing stay. Who does not fit beside it is
//!   refused.
//! - Whoever waits is granted or refused in the end, as long as leases end and loads do.

mod look;
mod pins;
mod seats;

pub use look::{next_look, returning, withdrawn};
pub use pins::{Pins, pins};

use crate::{TierId, budget::Budget, reclaim};
use seats::Seats;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// So long a tier stays that nobody uses, at [`Stance::Quiet`]: longer than a person thinks between two messages.
const QUIET_KEEP: Duration = Duration::from_secs(60);

/// So long a request waits for an alarm to pass.
pub const ALARM_PATIENCE: Duration = Duration::from_secs(60);

/// Everything that a decision depends on. Moments count from any start, by a clock that never steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    pub now: Duration,
    pub budget: Budget,
    /// So long younger requests may pass an older one.
    pub patience: Duration,
    pub alarm: Alarm,
    /// When it was raised.
    pub alarm_since: Duration,
    pub stance: Stance,
    /// The tier that comes back when another has idled out.
    pub home: Option<TierId>,
    /// A tier has ended, and its memory was waited for in vain.
    pub missing: Option<Missing>,
    pub tiers: Vec<TierView>,
    /// Requests without a lease, oldest first.
    pub queue: Vec<Waiting>,
}

/// Memory that should be back and is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    pub of: TierId,
    pub memory: reclaim::Missing,
}

/// How short the machine's memory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum Alarm {
    #[default]
    None,
    /// Nobody is admitted.
    Hold,
    /// Idle tiers are ended too.
    Unload,
    /// Tiers are ended, whoever uses them.
    Critical,
}

/// How much of the machine models may have, by what its user wishes and does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum Stance {
    #[default]
    Open,
    /// Nothing is loaded that no request waits for.
    Defers,
    /// Nor does anything stay that nobody uses, whether it is pinned or not.
    Quiet,
    /// Requests are refused. What is being answered is answered to its end.
    Paused,
}

/// One tier, as far as memory is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TierView {
    pub id: TierId,
    pub phase: Phase,
    /// What the tier takes while it holds memory, or would take when stopped. `None` until its model has been
    /// read; a tier without a plan is not loaded.
    pub plan_bytes: Option<u64>,
    /// Requests that use the tier now.
    pub leases: u32,
    /// When it was last granted, or fell idle; larger is more recent. A counter, because clocks step. It does not
    /// move while a lease among several ends, or the tier that has to drain would change with every release.
    pub last_used: u64,
    /// Since when a loaded tier has had no lease.
    pub idle_since: Option<Duration>,
    /// So long it stays loaded without one; `None`: for good.
    pub keep: Option<Duration>,
    pub pinned: bool,
    /// It was ended because nobody used it, and since then no tier has been loaded, and none ended for another cause.
    pub idled_out: bool,
    /// It is loaded for requests alone: its last load failed or it crashed soon after, or somebody has stopped it.
    pub rests: bool,
    pub stop: Option<StopWish>,
}

/// Whether a process of the tier exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Stopped,
    Starting,
    Ready,
    Stopping,
}

/// Somebody wants the tier to end. Until it has, it grants nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopWish {
    /// When its leases have ended.
    Drain,
    /// Now, whoever uses it.
    Force,
}

/// A request that waits for a tier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    pub request: u64,
    pub tier: TierId,
    pub since: Duration,
    /// Nobody needs it yet: it may have what lies idle, and holds nobody up.
    pub ahead: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Start a stopped tier's process.
    Start(TierId),
    /// End a tier's process. `force`: although it is leased.
    Stop { tier: TierId, force: bool, why: Why },
    /// Give the request a lease on its tier.
    Grant(u64),
    /// The request cannot have its tier.
    Refuse { request: u64, why: Refusal },
}

/// Why a tier is ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// Somebody wished it.
    Wished,
    RoomFor(TierId),
    /// The budget holds less than is loaded.
    Budget,
    /// Nobody has used it for so long.
    Idle(Duration),
    /// Nobody uses it, and nothing may stay that is not used.
    Stance(Stance),
    Alarm(Alarm),
}

impl Why {
    /// Nobody wanted it ended, and nobody needed its memory: it left since it was not used.
    #[must_use]
    pub fn is_disuse(&self) -> bool {
        matches!(self, Self::Idle(_) | Self::Stance(_))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It does not fit beside these, which stay loaded.
    Pinned(Vec<TierId>),
    /// Memory has been short for longer than a request waits.
    Alarm(Alarm),
    Paused,
    /// It takes so many bytes, and does not fit into what another tier's end has left.
    Missing(Missing, u64),
}

/// Whether a plan fits the budget when nothing else is loaded. One that does not is never started: whoever
/// waits for it has to be refused.
#[must_use]
pub fn fits_alone(budget: &Budget, plan_bytes: u64) -> bool {
    budget.max_loaded > 0 && plan_bytes <= budget.total_bytes
}

/// The steps that are due now, in the order to carry them out.
#[must_use]
pub fn plan(state: &State) -> Vec<Step> {
    let mut seats = Seats::new(state);
    seats.carry_out_wishes();
    seats.heed_alarm();
    seats.end_idle();
    // A budget that was lowered may be exceeded by what is loaded already.
    seats.end_excess();
    if state.stance == Stance::Paused {
        seats.refuse_all();
    } else if state.alarm == Alarm::None {
        for waiting in state.queue.iter().filter(|waiting| !waiting.ahead) {
            seats.serve(waiting);
        }
        for waiting in state.queue.iter().filter(|waiting| waiting.ahead) {
            seats.serve_ahead(waiting);
        }
    } else {
        seats.refuse_the_late();
    }
    seats.steps
}

impl State {
    /// How long the tier stays loaded with nobody using it; `None`: for good.
    fn keep_of(&self, tier: &TierView) -> Option<Duration> {
        let keep = tier.keep.filter(|_| !tier.pinned);
        match self.stance {
            Stance::Open | Stance::Defers => keep,
            Stance::Quiet => Some(keep.map_or(QUIET_KEEP, |keep| keep.min(QUIET_KEEP))),
            Stance::Paused => Some(Duration::ZERO),
        }
    }

    /// When nobody will have used it for as long as it stays; `None` while somebody does, and if it stays for good.
    #[must_use]
    pub fn idles_out_at(&self, tier: &TierView) -> Option<Duration> {
        tier.idle_since
            .filter(|_| tier.phase == Phase::Ready)?
            .checked_add(self.keep_of(tier)?)
    }

    /// When its patience ends.
    fn patience_ends(&self, waiting: &Waiting) -> Duration {
        match self.alarm {
            Alarm::None => waiting.since + self.patience,
            _ => waiting.since.max(self.alarm_since) + ALARM_PATIENCE,
        }
    }
}

#[cfg(test)]
mod tests;

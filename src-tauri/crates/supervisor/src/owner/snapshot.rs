//! The published status of the tiers.

use super::{Supervisor, Tier, Worker, words};
use crate::handle::PagedWorker;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tierbar_core::{
    TierId,
    budget::Placement,
    policy::{Alarm, Holdings, Phase, State},
    status::{BudgetStatus, TierStatus},
};

const HALF_A_SECOND: Duration = Duration::from_millis(500);

impl Supervisor {
    pub(super) fn publish(&self) {
        let state = self.state();
        let tiers: Vec<_> = self
            .tiers
            .iter()
            .map(|tier| TierStatus {
                steps_down_to: self.stands_in(tier),
                unloads_at_ms: unloads_at_ms(&state, &tier.spec.id),
                ..tier.status(&self.queue_of(tier), &self.loads)
            })
            .collect();
        let held: Holdings = self.tiers.iter().filter_map(Tier::holding).collect();
        let budget = BudgetStatus {
            total_bytes: self.options.budget.total_bytes,
            planned_bytes: held.total_bytes(),
        };
        self.tiers_seen
            .send_if_modified(|seen| replace_if_changed(seen, tiers));
        self.budget_seen
            .send_if_modified(|seen| replace_if_changed(seen, budget));
    }

    /// Returns the workers that serve and page their model themselves. With `mmap`, the system does.
    pub(crate) fn paged(&self) -> Vec<PagedWorker> {
        let workers = self.tiers.iter().filter_map(|tier| {
            let worker = tier.worker.as_ref()?;
            let placement = worker.load.plan.placement;
            let pages = matches!(
                placement,
                Placement::Advise | Placement::Cache | Placement::Stream
            );
            let serves = worker.phase == Phase::Ready && worker.load.command.is_none();
            (pages && serves).then(|| PagedWorker {
                tier: tier.spec.id.clone(),
                model: worker.load.model.clone(),
                placement,
                socket: worker.socket.clone(),
            })
        });
        workers.collect()
    }

    /// Returns what the tier's requests wait for, if there are any and it is not loaded.
    fn queue_of(&self, tier: &Tier) -> Option<String> {
        if tier.worker.is_some() || !self.queue.iter().any(|waiter| waiter.tier == tier.spec.id) {
            return None;
        }
        if self.alarm != Alarm::None {
            return Some("waiting until memory is no longer low".to_owned());
        }
        let others = self
            .tiers
            .iter()
            .filter_map(|tier| Some((tier, tier.worker.as_ref()?)));
        let for_what = |(tier, worker): (&Tier, &Worker)| match (worker.phase, worker.leases) {
            (Phase::Stopping, _) => Some(words::waits_for(&tier.spec.id, worker.missing.as_ref())),
            (Phase::Starting, _) => Some(format!("waiting until {} has started", tier.spec.id)),
            (_, 1..) => Some(format!("waiting until {} has answered", tier.spec.id)),
            _ => None,
        };
        others.filter_map(for_what).next()
    }
}

/// Computed from the clock each time, since that may be set, and the supervisor's own stops while the machine sleeps;
/// rounded to seconds, so that it stays the same.
fn unloads_at_ms(state: &State, tier: &TierId) -> Option<u64> {
    let mut tiers = state.tiers.iter();
    let at = state.idles_out_at(tiers.find(|view| view.id == *tier)?)?;
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    let began = clock
        .saturating_sub(state.now)
        .saturating_add(HALF_A_SECOND);
    let at = Duration::from_secs(began.as_secs()).checked_add(at)?;
    u64::try_from(at.as_millis()).ok()
}

fn replace_if_changed<T: PartialEq>(seen: &mut T, now: T) -> bool {
    let changed = *seen != now;
    *seen = now;
    changed
}

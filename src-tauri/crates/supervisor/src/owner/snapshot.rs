//! What everyone else sees of the tiers.

use super::{Supervisor, Tier, Worker, words};
use tierbar_core::{
    policy::{Alarm, Phase},
    status::{BudgetStatus, TierStatus},
};

impl Supervisor {
    pub(super) fn publish(&self) {
        let tiers: Vec<_> = self
            .tiers
            .iter()
            .map(|tier| TierStatus {
                steps_down_to: self.stands_in(tier),
                ..tier.status(&self.queue_of(tier), &self.loads)
            })
            .collect();
        let budget = BudgetStatus {
            total_bytes: self.options.budget.total_bytes,
            planned_bytes: self.tiers.iter().filter_map(Tier::held_bytes).sum(),
        };
        self.tiers_seen
            .send_if_modified(|seen| replace(seen, tiers));
        self.budget_seen
            .send_if_modified(|seen| replace(seen, budget));
    }

    /// What the tier's requests wait for, if there are any and it is not loaded.
    fn queue_of(&self, tier: &Tier) -> Option<String> {
        if tier.worker.is_some() || !self.queue.iter().any(|waiter| waiter.tier == tier.spec.id) {
            return None;
        }
        if self.alarm != Alarm::None {
            return Some("waits until memory is no longer short".to_owned());
        }
        let others = self
            .tiers
            .iter()
            .filter_map(|tier| Some((tier, tier.worker.as_ref()?)));
        let for_what = |(tier, worker): (&Tier, &Worker)| match (worker.phase, worker.leases) {
            (Phase::Stopping, _) => Some(words::waits_for(&tier.spec.id, worker.missing.as_ref())),
            (Phase::Starting, _) => Some(format!("waits until {} has started", tier.spec.id)),
            (_, 1..) => Some(format!("waits until {} has answered", tier.spec.id)),
            _ => None,
        };
        others.filter_map(for_what).next()
    }
}

fn replace<T: PartialEq>(seen: &mut T, now: T) -> bool {
    let changed = *seen != now;
    *seen = now;
    changed
}

//! Who was loaded when memory ran short is stood in for by the next smaller tier for a while: the answer that ran into it
//! ends, and the job goes on with less.

use super::{Supervisor, Tier};
use std::time::Duration;
use tierbar_core::TierId;

/// Long enough that a job's next requests do not run into the same shortness at once.
const STAYS_DOWN: Duration = Duration::from_secs(300);
/// From small to large. Which of two others is the smaller is not known.
const LADDER: [&str; 3] = ["fast", "primary", "heavy"];

impl Supervisor {
    /// An alarm has risen, or rises on.
    pub(super) fn step_down(&mut self) {
        let until = self.started.elapsed() + STAYS_DOWN;
        for tier in &mut self.tiers {
            if tier.worker.is_some() {
                tier.down_until = Some(until);
            }
        }
    }

    /// The smaller tier that stands in for this one now.
    pub(super) fn stands_in(&self, tier: &Tier) -> Option<TierId> {
        let down = tier.down_until? > self.started.elapsed() && self.options.rules.step_down;
        let rank = |id: &TierId| LADDER.iter().position(|name| *name == id.as_str());
        let own = rank(&tier.spec.id).filter(|_| down)?;
        let smaller = self.tiers.iter().filter(|other| {
            let has_model = other.spec.model.is_some() && !other.removed;
            has_model && rank(&other.spec.id).is_some_and(|rank| rank < own)
        });
        let next = smaller.max_by_key(|other| rank(&other.spec.id))?;
        Some(next.spec.id.clone())
    }

    /// When the next tier comes up again.
    pub(super) fn steps_end(&self) -> Option<Duration> {
        let now = self.started.elapsed();
        let ends = self.tiers.iter().filter_map(|tier| tier.down_until);
        ends.filter(|end| *end > now).min()
    }
}

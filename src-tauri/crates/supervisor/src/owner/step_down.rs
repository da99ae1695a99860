//! Stepping down: after memory has run short, loaded workers free what they can spare, and the next smaller tier answers
//! for the loaded one for a while. The interrupted answer ends; the client's next requests go to the smaller tier.

use super::{Supervisor, Tier, words};
use crate::process::trim;
use std::time::Duration;
use tierbar_core::{
    TierId,
    journal::{Kind, LogEvent},
    lease::Address,
    policy::Phase,
};

/// Long enough that a job's next requests do not run into the same shortness at once.
pub(super) const STAYS_DOWN: Duration = Duration::from_secs(300);
/// From small to large. The order of other tiers is unknown.
const LADDER: [&str; 3] = ["fast", "primary", "heavy"];

impl Supervisor {
    /// Called when an alarm rises or rises further.
    pub(super) fn step_down(&mut self) {
        let until = self.started.elapsed() + STAYS_DOWN;
        for index in 0..self.tiers.len() {
            if self.tiers[index].worker.is_none() {
                continue;
            }
            let was_down = self.stands_in(&self.tiers[index]).is_some();
            self.tiers[index].down_until = Some(until);
            let tier = &self.tiers[index];
            if let Some(smaller) = self.stands_in(tier).filter(|_| !was_down) {
                let sentence = words::steps_down(&tier.spec.id, &smaller, &self.causes);
                let model = tier.spec.model.as_ref();
                let event = LogEvent::for_tier(Kind::StepDown, &tier.spec.id, model, sentence);
                self.log(event);
            }
        }
    }

    /// Tells loaded workers to free what they can spare. Commands have no such interface.
    pub(super) fn trim(&self) {
        for worker in self.tiers.iter().filter_map(|tier| tier.worker.as_ref()) {
            if worker.phase == Phase::Ready && worker.load.command.is_none() {
                let worker = Address::Unix(worker.socket.clone());
                tokio::spawn(async move { trim(&worker).await });
            }
        }
    }

    /// The smaller tier that stands in for this one now.
    pub(super) fn stands_in(&self, tier: &Tier) -> Option<TierId> {
        let down = tier.down_until? > self.started.elapsed()
            && self.options.rules.step_down
            && !tier.is_endpoint();
        let rank = |id: &TierId| LADDER.iter().position(|name| *name == id.as_str());
        let own = rank(&tier.spec.id).filter(|_| down)?;
        let smaller = self.tiers.iter().filter(|other| {
            // Requests for this machine do not go to an endpoint.
            let here = other.spec.model.is_some() && !other.removed && !other.is_endpoint();
            here && rank(&other.spec.id).is_some_and(|rank| rank < own)
        });
        let next = smaller.max_by_key(|other| rank(&other.spec.id))?;
        Some(next.spec.id.clone())
    }

    /// Returns when the next tier stops being stepped down.
    pub(super) fn steps_end(&self) -> Option<Duration> {
        let now = self.started.elapsed();
        let ends = self.tiers.iter().filter_map(|tier| tier.down_until);
        ends.filter(|end| *end > now).min()
    }
}

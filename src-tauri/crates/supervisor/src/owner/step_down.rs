//! Memory has run short: who is loaded gives back what it can do without, and is stood in for by the next smaller tier for a
//! while. The answer that ran into it ends, and the job goes on with less.

use super::{Supervisor, Tier, words};
use crate::process::trim;
use std::time::Duration;
use tierbar_core::{
    TierId,
    journal::{Kind, LogEvent},
    policy::Phase,
};

/// Long enough that a job's next requests do not run into the same shortness at once.
const STAYS_DOWN: Duration = Duration::from_secs(300);
/// From small to large. Which of two others is the smaller is not known.
const LADDER: [&str; 3] = ["fast", "primary", "heavy"];

impl Supervisor {
    /// An alarm has risen, or rises on.
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
                let sentence = words::steps_down(&tier.spec.id, &smaller, STAYS_DOWN, &self.causes);
                let model = tier.spec.model.as_ref();
                let event = LogEvent::of(Kind::StepDown, &tier.spec.id, model, sentence);
                self.log(event);
            }
        }
    }

    /// Loaded workers give back what they can do without. No command in a worker's place knows how.
    pub(super) fn trim(&self) {
        for worker in self.tiers.iter().filter_map(|tier| tier.worker.as_ref()) {
            if worker.phase == Phase::Ready && worker.load.command.is_none() {
                let socket = worker.socket.clone();
                tokio::spawn(async move { trim(&socket).await });
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
            // What was meant for this machine stays on it.
            let here = other.spec.model.is_some() && !other.removed && !other.is_endpoint();
            here && rank(&other.spec.id).is_some_and(|rank| rank < own)
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

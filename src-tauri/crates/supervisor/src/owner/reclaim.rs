//! Workers that have ended and whose memory is not back yet.

use super::{Reply, Supervisor, WaitingRequest};
use std::time::Duration;
use tierbar_core::{TierId, budget::gib, policy, reclaim::MissingMemory};

impl Supervisor {
    pub(super) fn missed(
        &mut self,
        id: &TierId,
        worker: u64,
        missing: MissingMemory,
        waited: Duration,
    ) {
        let next = self.next_plan();
        if let Some((of, known)) = &mut self.missing
            && *of == worker
        {
            known.memory = missing;
            return;
        }
        let Some(tier) = self.tier(id) else { return };
        let Some(running) = tier.worker_mut(worker) else {
            return;
        };
        let first = running.missing.replace(missing).is_none();
        let (bytes, available) = (gib(missing.bytes), gib(missing.available_bytes));
        if first {
            tracing::info!(tier = %id, missing = %bytes, held = missing.held, "waiting for memory");
        }
        if missing.is_given_up(waited, next) {
            tracing::warn!(tier = %id, missing = %bytes, %available, held = missing.held, ?waited, "memory was not freed");
            let stoppers = tier.given_up(&missing, waited);
            let of = id.clone();
            let memory = missing;
            self.missing = Some((worker, policy::MissingTierMemory { of, memory }));
            self.settle(id, stoppers);
        }
    }

    /// Records that all memory is freed, or counts as another program's.
    pub(super) fn back(&mut self, id: &TierId, worker: u64, available: Option<u64>) {
        match &mut self.missing {
            Some((of, _)) if *of == worker => {
                tracing::info!(tier = %id, "all memory is free again");
                self.missing = None;
            }
            Some((_, known)) => {
                if let Some(bytes) = available {
                    known.memory.available_bytes = bytes;
                }
            }
            None => {}
        }
        let Some(tier) = self.tier(id) else { return };
        if tier.worker_mut(worker).is_some() {
            let stoppers = tier.back();
            self.settle(id, stoppers);
        }
    }

    fn settle(&mut self, id: &TierId, stoppers: Vec<Reply<()>>) {
        self.tiers
            .retain(|tier| !tier.removed || tier.spec.id != *id);
        self.publish();
        for stopper in stoppers {
            let _ = stopper.send(Ok(()));
        }
    }

    /// Returns what the oldest request for an unloaded tier needs.
    fn next_plan(&self) -> Option<u64> {
        let requests = |waiter: &&WaitingRequest| !waiter.want.is_ahead();
        self.queue.iter().filter(requests).find_map(|waiter| {
            let mut tiers = self.tiers.iter();
            let tier = tiers.find(|tier| tier.spec.id == waiter.tier)?;
            let holding = tier.next_holding()?;
            tier.living().is_none().then_some(holding.bytes)
        })
    }
}

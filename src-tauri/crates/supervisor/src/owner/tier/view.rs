//! A tier as the policy and its users see it.

use super::{Tier, Worker};
use crate::{owner::words, safe_mode::LoadRecord};
use std::time::Duration;
use tierbar_core::{
    Error, Modality, TierState,
    lease::KeepAlive,
    policy::{Phase, StopRequest, TierView},
    setup::is_starter,
    status::{EngineKind, TierStatus},
};

impl Tier {
    pub(in crate::owner) fn view(&self, now: Duration, loads: &LoadRecord) -> TierView {
        let worker = self.worker.as_ref();
        let prepared = self.next_holding();
        let holding = self.holding().or(prepared);
        // A stale worker ends once its successor is known to be loadable.
        let outdated = (self.stale() && prepared.is_some()).then_some(StopRequest::Drain);
        let late = self.drain_until.is_some_and(|until| until <= now);
        let stop = |(stop, _): &(StopRequest, Error)| if late { StopRequest::Force } else { *stop };
        TierView {
            id: self.spec.id.clone(),
            phase: worker.map_or(Phase::Stopped, |worker| worker.phase),
            kind: holding.map(|holding| holding.kind).unwrap_or_default(),
            plan_bytes: holding.map(|holding| holding.bytes),
            reserved_bytes: holding.map_or(0, |holding| holding.reserved_bytes),
            leases: worker.map_or(0, |worker| worker.leases),
            brief: worker.map_or(0, |worker| worker.brief),
            background: worker.map_or(0, |worker| worker.background),
            brief_after: worker.map_or(Duration::ZERO, |worker| worker.brief_after),
            last_used: self.last_used,
            idle_since: worker.and_then(|worker| worker.idle_since),
            keep: worker
                .and_then(|worker| worker.keep)
                .map_or(self.spec.keep, KeepAlive::length),
            pinned: self.spec.pinned && !self.removed,
            idled_out: self.idled_out,
            rests: self.rests || self.spec.model.is_none() || self.never_ended(loads).is_some(),
            stop: self.stop.as_ref().map(stop).or(outdated),
        }
    }

    /// A loaded model without its projector takes text only: there was no room for it.
    fn input_modalities(&self) -> Vec<Modality> {
        let modalities = &self.spec.input_modalities;
        let text_only =
            |worker: &Worker| worker.load.command.is_none() && worker.load.projector.is_none();
        if self.worker.as_ref().is_some_and(text_only) {
            return modalities.iter().copied().take(1).collect();
        }
        modalities.clone()
    }

    /// Returns its status; `waiting` is what its requests wait for.
    pub(in crate::owner) fn status(
        &self,
        waiting: &Option<String>,
        loads: &LoadRecord,
    ) -> TierStatus {
        let worker = self.worker.as_ref();
        let state = match worker.map(|worker| (worker.phase, worker.leases)) {
            Some((Phase::Starting, _)) => TierState::Starting,
            Some((Phase::Stopping, _)) if self.living().is_none() && self.failure.is_some() => {
                TierState::Failed
            }
            Some((Phase::Stopping, _)) => TierState::Stopping,
            Some((_, 1..)) if self.stop.is_some() => TierState::Stopping,
            Some((_, 0)) => TierState::Ready,
            Some(_) => TierState::Busy,
            None if self.is_endpoint() && self.remote.leases > 0 => TierState::Busy,
            None if self.is_endpoint() => TierState::Ready,
            None if self.failure.is_some() => TierState::Failed,
            None => TierState::Stopped,
        };
        let failure = self.failure.as_ref().map(|failure| failure.message.clone());
        let drains = worker.is_some_and(|worker| worker.phase == Phase::Ready)
            && state == TierState::Stopping;
        TierStatus {
            id: self.spec.id.clone(),
            state,
            engine: EngineKind::from(&self.spec.engine),
            model: self.spec.model.clone(),
            is_starter: self
                .spec
                .model
                .as_ref()
                .is_some_and(|model| is_starter(model.as_str())),
            aliases: self.spec.aliases.clone(),
            kind: self.spec.kind,
            pid: worker.and_then(|worker| worker.pid),
            footprint_bytes: worker.and_then(|worker| worker.footprint_bytes),
            plan: worker.map(|worker| worker.load.plan.clone()),
            context_tokens: worker
                .map_or(self.spec.settings.context, |worker| worker.context_tokens),
            kv_cache: worker.map_or(self.spec.settings.kv_cache, |worker| {
                worker.load.settings.kv_cache
            }),
            input_modalities: self.input_modalities(),
            loaded_percent: worker
                .filter(|worker| worker.phase == Phase::Starting)
                .and_then(|worker| worker.loaded_percent),
            reason: failure
                .or_else(|| drains.then(|| "stops when its answers finish".to_owned()))
                .or_else(|| waiting.clone())
                .or_else(|| worker.and_then(Worker::exceeds))
                .or_else(|| match worker.and_then(|worker| worker.missing) {
                    Some(missing) => Some(words::not_back(self.why.as_deref(), &missing, false)),
                    None => self.why.clone(),
                })
                .or_else(|| {
                    let load = self.never_ended(loads).filter(|_| worker.is_none());
                    load.map(|_| words::NEVER_ENDED.to_owned())
                }),
            unloads_at_ms: None,
            steps_down_to: None,
        }
    }
}

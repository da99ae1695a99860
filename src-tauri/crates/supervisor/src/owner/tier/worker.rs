//! A process of a tier, as the owner knows it.

use crate::{LoadSpec, TierSpec, handle::WorkerLease, owner::OwnerCalls, process::StopSignal};
use std::{mem, path::PathBuf, time::Duration};
use tierbar_core::{
    Error, TierId,
    budget::gib,
    lease::{Endpoint, KeepAlive, Purpose},
    policy::Phase,
    reclaim::MissingMemory,
};
use tokio::{sync::watch, time::Instant};

/// A process of a tier.
#[derive(Debug, Clone)]
pub(in crate::owner) struct Worker {
    pub(in crate::owner) id: u64,
    /// Never `Stopped`.
    pub(in crate::owner) phase: Phase,
    pub(in crate::owner) pid: Option<u32>,
    pub(in crate::owner) socket: PathBuf,
    pub(in crate::owner) leases: u32,
    /// Of them, brief ones.
    pub(in crate::owner) brief: u32,
    /// Of them, background ones that have not been taken back.
    pub(in crate::owner) background: u32,
    /// Before that time, no brief request passes an older one.
    pub(in crate::owner) brief_after: Duration,
    /// Since when it has been ready without a lease.
    pub(in crate::owner) idle_since: Option<Duration>,
    /// How long its last request keeps it loaded, if it set that.
    pub(in crate::owner) keep: Option<KeepAlive>,
    pub(in crate::owner) begun: Instant,
    /// Whether it has completed a request.
    pub(in crate::owner) served: bool,
    pub(in crate::owner) ready_since: Option<Instant>,
    pub(in crate::owner) context_tokens: u32,
    pub(in crate::owner) footprint_bytes: Option<u64>,
    pub(in crate::owner) loaded_percent: Option<u8>,
    /// Its process has ended. It stays here until its memory is back.
    pub(in crate::owner) gone: bool,
    /// Memory that was not freed at the last check.
    pub(in crate::owner) missing: Option<MissingMemory>,
    /// The tier as it was configured when this was started.
    pub(in crate::owner) spec: TierSpec,
    pub(in crate::owner) load: LoadSpec,
    endpoint: Endpoint,
    pub(in crate::owner) stop: StopSignal,
    /// The error that its leases get.
    pub(in crate::owner) ended: watch::Sender<Option<Error>>,
    /// The reason for which its background leases are taken back.
    revoked: watch::Sender<Option<Error>>,
}

impl Worker {
    pub(in crate::owner) fn new(
        id: u64,
        spec: TierSpec,
        load: LoadSpec,
        socket: PathBuf,
        endpoint: Endpoint,
        stop: StopSignal,
    ) -> Self {
        let spec = TierSpec {
            path: Some(load.path.clone()),
            ..spec
        };
        Self {
            id,
            phase: Phase::Starting,
            pid: None,
            socket,
            leases: 0,
            brief: 0,
            background: 0,
            brief_after: Duration::ZERO,
            idle_since: None,
            keep: None,
            begun: Instant::now(),
            served: false,
            ready_since: None,
            context_tokens: load.plan.context_tokens,
            footprint_bytes: None,
            loaded_percent: None,
            gone: false,
            missing: None,
            spec,
            load,
            endpoint,
            stop,
            ended: watch::Sender::default(),
            revoked: watch::Sender::default(),
        }
    }

    pub(in crate::owner) fn lease(
        &mut self,
        tier: TierId,
        purpose: Purpose,
        owner: OwnerCalls,
    ) -> WorkerLease {
        self.leases += 1;
        self.brief += u32::from(purpose == Purpose::Brief);
        self.background += u32::from(purpose == Purpose::Background);
        self.idle_since = None;
        let background = purpose == Purpose::Background;
        // What no client waits for leaves a client's wish in force.
        if !background {
            self.keep = None;
        }
        WorkerLease {
            tier,
            worker: self.id,
            model: self.load.model.clone(),
            endpoint: self.endpoint.clone(),
            ended: self.ended.subscribe(),
            purpose,
            granted: Instant::now(),
            revoked: background.then(|| self.revoked.subscribe()),
            owner,
        }
    }

    pub(in crate::owner) fn released(&mut self, purpose: Purpose, held: Duration, now: Duration) {
        self.leases -= 1;
        match purpose {
            Purpose::Answer => {}
            Purpose::Brief => {
                self.brief -= 1;
                // A client that reads slowly does not keep the others waiting.
                let rest = now + held.min(Purpose::BRIEF);
                self.brief_after = self.brief_after.max(rest);
            }
            Purpose::Background => self.background = self.background.saturating_sub(1),
        }
    }

    pub(in crate::owner) fn revoke(&mut self, reason: &Error) {
        self.background = 0;
        let before = mem::take(&mut self.revoked);
        before.send_replace(Some(reason.clone()));
    }

    /// Returns a sentence if a command uses more memory than declared, on which the plan relies.
    pub(super) fn exceeds(&self) -> Option<String> {
        self.load.command.as_ref()?;
        let (bytes, planned) = (self.footprint_bytes?, self.load.plan.total_bytes());
        (bytes > planned).then(|| {
            format!(
                "uses {}, more than the {} in its configuration: raise `memory`",
                gib(bytes),
                gib(planned)
            )
        })
    }
}

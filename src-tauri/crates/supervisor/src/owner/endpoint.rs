//! Endpoints. Nothing is loaded for them and no memory is planned, so the policy does not know them: leases are granted at
//! once.

use super::{Supervisor, Tier, TierRequest, WaitingRequest};
use crate::handle::WorkerLease;
use tierbar_core::{
    Code, Error, TierId,
    config::Engine,
    lease::{Address, Endpoint, Foreign},
};
use tokio::{sync::watch, time::Instant};

/// The `worker` of a lease on an endpoint; real workers count from 1.
pub(super) const REMOTE: u64 = 0;

/// The leases on an endpoint.
#[derive(Debug)]
pub(super) struct EndpointLeases {
    pub(super) leases: u32,
    ended: watch::Sender<Option<Error>>,
}

impl Default for EndpointLeases {
    fn default() -> Self {
        Self {
            leases: 0,
            ended: watch::Sender::new(None),
        }
    }
}

impl EndpointLeases {
    /// Ends running requests, for this reason.
    pub(super) fn cut(&mut self, reason: &Error) {
        let before = std::mem::take(self);
        // The leases are still released.
        self.leases = before.leases;
        before.ended.send_replace(Some(reason.clone()));
    }
}

impl Tier {
    pub(super) fn is_endpoint(&self) -> bool {
        matches!(self.spec.engine, Engine::Endpoint(_))
    }
}

impl Supervisor {
    pub(super) fn is_endpoint(&self, id: &TierId) -> bool {
        let of = |tier: &Tier| tier.spec.id == *id && tier.is_endpoint();
        self.tiers.iter().any(of)
    }

    pub(super) fn grant_endpoint(&mut self, id: TierId, want: TierRequest) {
        let events = self.events.clone();
        let Some(tier) = self.tier(&id) else { return };
        match want {
            TierRequest::Lease(reply, purpose) => match (&tier.spec.engine, &tier.spec.model) {
                (Engine::Endpoint(engine), Some(model)) => {
                    let lease = WorkerLease {
                        worker: REMOTE,
                        model: model.clone(),
                        endpoint: Endpoint::Foreign(Foreign {
                            at: Address::Url(engine.endpoint.clone()),
                            model: tier.spec.remote_model.clone(),
                            dialect: engine.dialect,
                        }),
                        ended: tier.remote.ended.subscribe(),
                        purpose,
                        granted: Instant::now(),
                        revoked: Some(tier.remote.ended.subscribe()),
                        events,
                        tier: id,
                    };
                    tier.remote.leases += 1;
                    self.publish();
                    // If the caller has gone, the lease is dropped here and so released.
                    let _ = reply.send(Ok(lease));
                }
                _ => {
                    let what = format!("{id} has no endpoint");
                    let _ = reply.send(Err(Error::new(Code::Internal, what)));
                }
            },
            TierRequest::Loaded(reply) => drop(reply.send(Ok(()))),
            TierRequest::Expected(_) | TierRequest::Returning => {}
        }
    }

    pub(super) fn released_endpoint(&mut self, id: &TierId) {
        if let Some(tier) = self.tier(id) {
            tier.remote.leases = tier.remote.leases.saturating_sub(1);
        }
    }

    /// Grants what was queued before its tier became an endpoint.
    pub(super) fn grant_to_endpoints(&mut self) {
        let endpoints = self.tiers.iter().filter(|tier| tier.is_endpoint());
        let endpoints: Vec<_> = endpoints.map(|tier| tier.spec.id.clone()).collect();
        let of = |waiter: &mut WaitingRequest| endpoints.contains(&waiter.tier);
        let waiting: Vec<_> = self.queue.extract_if(.., of).collect();
        for waiter in waiting {
            self.grant_endpoint(waiter.tier, waiter.want);
        }
    }
}

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

#[derive(Debug, Default)]
pub(super) struct EndpointLeases {
    pub(super) leases: u32,
    ended: watch::Sender<Option<Error>>,
}

impl EndpointLeases {
    /// Ends running requests, for this reason.
    pub(super) fn cut(&mut self, reason: &Error) {
        // The leases are still released.
        let ended = std::mem::take(&mut self.ended);
        ended.send_replace(Some(reason.clone()));
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
        let owner = self.calls.clone();
        let Some(tier) = self.tier(&id) else { return };
        let (reply, purpose) = match want {
            TierRequest::Lease(reply, purpose) => (reply, purpose),
            TierRequest::Loaded(reply) => return drop(reply.send(Ok(()))),
            TierRequest::Expected(_) | TierRequest::Returning => return,
        };
        let (Engine::Endpoint(engine), Some(model)) = (&tier.spec.engine, &tier.spec.model) else {
            let error = Error::new(Code::Internal, format!("{id} has no endpoint"));
            return drop(reply.send(Err(error)));
        };
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
            owner,
            tier: id,
        };
        tier.remote.leases += 1;
        self.publish();
        // If the caller has gone, the lease is dropped here and so released.
        let _ = reply.send(Ok(lease));
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

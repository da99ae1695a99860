//! Requests for tiers: which are admitted, and those that wait.

use super::{Reply, Supervisor};
use crate::handle::{WorkerLease, shutting_down};
use std::{sync::Arc, time::Duration};
use tierbar_core::{Code, Error, TierId, lease::Purpose, nearest::suggest};
use tokio::time::Instant;

/// More waiting requests than this mean that something is wrong with the client.
const LONGEST_QUEUE: usize = 256;

#[derive(Debug)]
pub(crate) enum TierRequest {
    Lease(Reply<WorkerLease>, Purpose),
    /// To load the tier, without a lease.
    Loaded(Reply<()>),
    /// To have the tier loaded for a request expected until then.
    Expected(Instant),
    /// To load the tier again: [`policy::tier_to_preload`].
    Returning,
}

impl TierRequest {
    pub(super) fn refuse(self, error: Error) {
        // A caller that has gone needs no reply.
        match self {
            Self::Lease(reply, _) => drop(reply.send(Err(error))),
            Self::Loaded(reply) => drop(reply.send(Err(error))),
            Self::Expected(_) | Self::Returning => {}
        }
    }

    pub(super) fn abandoned(&self) -> bool {
        match self {
            Self::Lease(reply, _) => reply.is_closed(),
            Self::Loaded(reply) => reply.is_closed(),
            Self::Expected(until) => *until <= Instant::now(),
            Self::Returning => false,
        }
    }

    pub(super) fn is_ahead(&self) -> bool {
        matches!(self, Self::Expected(_) | Self::Returning)
    }

    pub(super) fn purpose(&self) -> Purpose {
        match self {
            Self::Lease(_, purpose) => *purpose,
            _ => Purpose::Answer,
        }
    }
}

#[derive(Debug)]
pub(super) struct WaitingRequest {
    pub(super) request: u64,
    pub(super) tier: TierId,
    pub(super) since: Duration,
    pub(super) want: TierRequest,
}

impl Supervisor {
    pub(super) fn enqueue(&mut self, id: TierId, want: TierRequest) {
        if let TierRequest::Expected(until) = want {
            // After a failed load, the tier loads only on request.
            if self.went_wrong(&id) {
                return;
            }
            let expected = |waiter: &&mut WaitingRequest| {
                waiter.tier == id && matches!(waiter.want, TierRequest::Expected(_))
            };
            if let Some(waiter) = self.queue.iter_mut().find(expected) {
                waiter.want = TierRequest::Expected(until);
                return;
            }
        }
        if !want.is_ahead()
            && let Some(tier) = self.tier(&id)
        {
            tier.rests = false;
            if matches!(want, TierRequest::Loaded(_)) {
                let kept = Error::new(Code::Cancelled, format!("{id} was requested again"));
                for stopper in tier.keep() {
                    let _ = stopper.send(Err(kept.clone()));
                }
            }
        }
        let waiter = WaitingRequest {
            request: self.next(),
            tier: id,
            since: self.started.elapsed(),
            want,
        };
        self.queue.push(waiter);
    }

    fn went_wrong(&mut self, id: &TierId) -> bool {
        let loads = Arc::clone(&self.loads);
        let tier = self.tier(id);
        tier.is_some_and(|tier| tier.failure.is_some() || tier.never_ended(&loads).is_some())
    }

    pub(super) fn admit(&mut self, id: &TierId) -> Result<(), Error> {
        if self.closing {
            return Err(shutting_down());
        }
        let real = self.queue.iter().filter(|waiter| !waiter.want.is_ahead());
        let waiting = real.count();
        match self.tier(id).filter(|tier| !tier.removed) {
            Some(tier) => tier.rested(Instant::now())?,
            None => return Err(self.unknown(id)),
        }
        if waiting >= LONGEST_QUEUE {
            let message = format!("{waiting} requests are already waiting for a tier");
            return Err(Error::new(Code::Overloaded, message)
                .hint("send fewer requests at once, or wait for answers"));
        }
        Ok(())
    }

    pub(super) fn unknown(&self, id: &TierId) -> Error {
        let known = self.tiers.iter().filter(|tier| !tier.removed);
        let known: Vec<_> = known.map(|tier| tier.spec.id.as_str()).collect();
        let hint = match known.as_slice() {
            [] => "no tiers are configured yet".to_owned(),
            names => {
                let all = format!("the tiers are {}", names.join(", "));
                suggest(id.as_str(), names.iter().copied(), all)
            }
        };
        let message = format!("there is no tier named \"{id}\"");
        Error::new(Code::TierUnknown, message).hint(hint)
    }

    /// Returns how many requests were refused, without expected ones.
    pub(super) fn refuse(&mut self, id: &TierId, error: &Error) -> usize {
        self.publish();
        let mut refused = 0;
        for waiter in self.queue.extract_if(.., |waiter| waiter.tier == *id) {
            refused += usize::from(!waiter.want.is_ahead());
            waiter.want.refuse(error.clone());
        }
        self.log_refusal(id, refused, error);
        refused
    }
}

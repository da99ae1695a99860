//! The handle on the supervisor, and the leases that it grants.

use crate::{
    BegunLoad, Rules, TierSpec,
    owner::{OwnerCalls, Reply, Supervisor, TierRequest},
};
use std::{path::PathBuf, sync::Arc, time::Duration};
use tierbar_core::{
    Code, Error, ModelId, TierId,
    budget::{Budget, Placement},
    lease::{BoxFuture, Endpoint, KeepAlive, Lease, Purpose, Tiers},
    policy::{Alarm, Stance},
    status::{BudgetStatus, TierStatus},
};
use tokio::{
    sync::{oneshot, watch},
    time::Instant,
};

/// A request that has not arrived by then is no longer expected.
const EXPECTED_FOR: Duration = Duration::from_secs(30);

/// A handle on the tiers. When the last clone is dropped, all workers are ended.
#[derive(Debug, Clone)]
pub struct Handle {
    pub(crate) shared: Arc<SharedHandle>,
}

/// A loaded worker that knows which of its experts or layers are in memory.
#[derive(Debug, Clone)]
pub struct PagedWorker {
    pub tier: TierId,
    pub model: ModelId,
    pub placement: Placement,
    /// Where it answers.
    pub socket: PathBuf,
}

#[derive(Debug)]
pub(crate) struct SharedHandle {
    pub(crate) owner: OwnerCalls,
    pub(crate) tiers: watch::Receiver<Vec<TierStatus>>,
    pub(crate) budget: watch::Receiver<BudgetStatus>,
    pub(crate) never_ended: watch::Receiver<Vec<BegunLoad>>,
}

impl Drop for SharedHandle {
    fn drop(&mut self) {
        self.owner.send(|owner| owner.close(None));
    }
}

impl Handle {
    /// Returns the tiers' states as they change.
    pub fn watch(&self) -> watch::Receiver<Vec<TierStatus>> {
        self.shared.tiers.clone()
    }

    /// Returns the budget, and the sum of the plans of the tiers that hold memory now.
    pub fn budget(&self) -> BudgetStatus {
        *self.shared.budget.borrow()
    }

    /// Returns the loads during which a host or the machine died. Their models load only on request.
    pub fn never_ended(&self) -> watch::Receiver<Vec<BegunLoad>> {
        self.shared.never_ended.clone()
    }

    /// Replaces the configured tiers. One that is gone is drained; one that changed is restarted at its next
    /// request, after its leases have ended.
    pub fn set_tiers(&self, tiers: Vec<TierSpec>) {
        self.send(move |owner| owner.set_tiers(tiers));
    }

    /// Replaces the budget. Tiers that it no longer holds are ended as their leases end.
    pub fn set_budget(&self, budget: Budget) {
        self.send(move |owner| owner.set_budget(budget));
    }

    /// Replaces the rules for all tiers.
    pub fn set_rules(&self, rules: Rules) {
        self.send(move |owner| owner.set_rules(rules));
    }

    /// Sets how short memory is, and `why` in a few words with their figures.
    pub fn set_alarm(&self, alarm: Alarm, why: String) {
        self.send(move |owner| owner.set_alarm(alarm, why));
    }

    /// Sets what models may use of the machine, and why, such as "Tierbar is paused".
    pub fn set_stance(&self, stance: Stance, why: String) {
        self.send(move |owner| owner.set_stance(stance, why));
    }

    /// Memory readings for the snapshot, in bytes. A tier that is not named keeps its last one.
    pub fn set_footprints(&self, footprints: Vec<(TierId, u64)>) {
        self.send(move |owner| owner.set_footprints(footprints));
    }

    /// Returns the loaded workers whose experts or layers come and go. Nothing keeps them loaded.
    pub async fn paged(&self) -> Vec<PagedWorker> {
        let (reply, answer) = oneshot::channel();
        self.send(move |owner| drop(reply.send(owner.paged())));
        // After the owner's end there are none.
        answer.await.unwrap_or_default()
    }

    /// Refuses new requests, refuses those that wait, ends all workers, and returns when all are gone. May be
    /// called more than once.
    pub async fn shutdown(&self) {
        let (done, gone) = oneshot::channel();
        self.send(move |owner| owner.close(Some(done)));
        // An error means that the owner has already ended, after the last worker.
        let _ = gone.await;
    }

    fn send(&self, call: impl FnOnce(&mut Supervisor) + Send + 'static) {
        self.shared.owner.send(call);
    }

    async fn request<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Supervisor, Reply<T>) + Send + 'static,
    ) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        self.send(move |owner| call(owner, reply));
        let owner = &self.shared.owner;
        let mut pending = PendingReply { answer, owner };
        let answer = (&mut pending.answer).await;
        // The owner drops no reply while it lives.
        answer.unwrap_or_else(|_| Err(shutting_down()))
    }
}

/// Notifies the owner when the caller has gone away, so that its request leaves the queue at once.
struct PendingReply<'a, T> {
    answer: oneshot::Receiver<T>,
    owner: &'a OwnerCalls,
}

impl<T> Drop for PendingReply<'_, T> {
    fn drop(&mut self) {
        if !self.answer.is_terminated() {
            // The owner looks for closed replies, so this one is closed first.
            self.answer.close();
            self.owner.send(|_| {});
        }
    }
}

impl Tiers for Handle {
    fn lease_for(
        &self,
        tier: &TierId,
        purpose: Purpose,
    ) -> BoxFuture<'_, Result<Box<dyn Lease>, Error>> {
        let tier = tier.clone();
        Box::pin(async move {
            let lease = self.request(move |owner, reply| {
                owner.want(tier, TierRequest::Lease(reply, purpose));
            });
            Ok(Box::new(lease.await?) as Box<dyn Lease>)
        })
    }

    fn start(&self, tier: &TierId) -> BoxFuture<'_, Result<(), Error>> {
        let tier = tier.clone();
        Box::pin(self.request(move |owner, reply| owner.want(tier, TierRequest::Loaded(reply))))
    }

    fn stop(&self, tier: &TierId, force: bool) -> BoxFuture<'_, Result<(), Error>> {
        let tier = tier.clone();
        Box::pin(self.request(move |owner, reply| owner.stop(&tier, force, reply)))
    }

    fn expect(&self, tier: &TierId) {
        let (tier, until) = (tier.clone(), Instant::now() + EXPECTED_FOR);
        self.send(move |owner| owner.want(tier, TierRequest::Expected(until)));
    }

    fn snapshot(&self) -> Vec<TierStatus> {
        self.shared.tiers.borrow().clone()
    }
}

/// The right to use one worker; see [`Lease`].
#[derive(Debug)]
pub(crate) struct WorkerLease {
    pub(crate) tier: TierId,
    /// Which of the tier's successive workers this is a lease on.
    pub(crate) worker: u64,
    pub(crate) model: ModelId,
    pub(crate) endpoint: Endpoint,
    pub(crate) ended: watch::Receiver<Option<Error>>,
    pub(crate) purpose: Purpose,
    pub(crate) granted: Instant,
    /// Why it is taken back, if it may be.
    pub(crate) revoked: Option<watch::Receiver<Option<Error>>>,
    pub(crate) owner: OwnerCalls,
}

impl Drop for WorkerLease {
    fn drop(&mut self) {
        let (tier, worker, purpose) = (self.tier.clone(), self.worker, self.purpose);
        let held = self.granted.elapsed();
        self.owner
            .send(move |owner| owner.released(&tier, worker, purpose, held));
    }
}

impl Lease for WorkerLease {
    fn tier(&self) -> &TierId {
        &self.tier
    }

    fn model(&self) -> &ModelId {
        &self.model
    }

    fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    fn keep(&self, keep: KeepAlive) {
        let (tier, worker) = (self.tier.clone(), self.worker);
        self.owner
            .send(move |owner| owner.keep(&tier, worker, keep));
    }

    fn ended(&self) -> BoxFuture<'_, Error> {
        Box::pin(reason(self.ended.clone()))
    }

    fn revoked(&self) -> Option<BoxFuture<'_, Error>> {
        Some(Box::pin(reason(self.revoked.clone()?)))
    }
}

async fn reason(mut given: watch::Receiver<Option<Error>>) -> Error {
    match given.wait_for(Option::is_some).await {
        Ok(error) => error.clone().unwrap_or_else(shutting_down),
        Err(_) => shutting_down(),
    }
}

pub(crate) fn shutting_down() -> Error {
    Error::new(Code::ShuttingDown, "Tierbar is shutting down")
}

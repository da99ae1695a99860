//! Tiers whose workers the tests play.

use super::RecordedCalls;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};
use tierbar_core::{
    Error, ModelId, TierId,
    lease::{Address, BoxFuture, Endpoint, Foreign, KeepAlive, Lease, Purpose, Tiers},
    status::{Status, TierStatus},
};
use tokio::sync::watch;

/// One tier, `fast` with the model `small`, unless a test has others, which all have the same worker. A lease waits until `loaded`
/// says how the load went.
#[derive(Debug)]
pub(crate) struct OneTier {
    pub(super) loaded: watch::Receiver<Option<Result<Endpoint, Error>>>,
    pub(super) ended: watch::Receiver<Option<Error>>,
    pub(super) leases: watch::Sender<usize>,
    pub(super) asked: RecordedCalls,
    pub(super) others: Others,
    pub(super) status: watch::Sender<Arc<Status>>,
}

/// Tiers beside the one, each loaded or with what its load comes to.
pub(super) type Others = Arc<Mutex<BTreeMap<TierId, Result<Endpoint, Error>>>>;

#[derive(Debug)]
pub(super) struct OneLease {
    tier: TierId,
    model: ModelId,
    endpoint: Endpoint,
    pub(super) ended: watch::Receiver<Option<Error>>,
    pub(super) leases: watch::Sender<usize>,
    pub(super) asked: RecordedCalls,
}

impl Drop for OneLease {
    fn drop(&mut self) {
        self.leases.send_modify(|held| *held -= 1);
    }
}

impl Lease for OneLease {
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
        self.asked.note(format!("keep {:?}", keep.length()));
    }
    fn ended(&self) -> BoxFuture<'_, Error> {
        let mut ended = self.ended.clone();
        Box::pin(async move {
            ended
                .wait_for(Option::is_some)
                .await
                .unwrap()
                .clone()
                .unwrap()
        })
    }
    fn revoked(&self) -> Option<BoxFuture<'_, Error>> {
        let Endpoint::Foreign(Foreign {
            at: Address::Url(_),
            ..
        }) = &self.endpoint
        else {
            return None;
        };
        Some(self.ended())
    }
}

impl Tiers for OneTier {
    fn lease_for(&self, tier: &TierId, _: Purpose) -> BoxFuture<'_, Result<Box<dyn Lease>, Error>> {
        let (tier, mut loaded) = (tier.clone(), self.loaded.clone());
        let other = self.others.lock().unwrap().get(&tier).cloned();
        Box::pin(async move {
            let loaded = async { loaded.wait_for(Option::is_some).await.unwrap().clone() };
            let endpoint = match other {
                Some(other) => other?,
                None => loaded.await.unwrap()?,
            };
            self.leases.send_modify(|held| *held += 1);
            Ok(Box::new(OneLease {
                tier,
                model: ModelId("small".to_owned()),
                endpoint,
                ended: self.ended.clone(),
                leases: self.leases.clone(),
                asked: self.asked.clone(),
            }) as Box<dyn Lease>)
        })
    }
    fn start(&self, tier: &TierId) -> BoxFuture<'_, Result<(), Error>> {
        let lease = self.lease(tier);
        Box::pin(async move { lease.await.map(drop) })
    }
    fn stop(&self, _: &TierId, _: bool) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async { Ok(()) })
    }
    fn expect(&self, tier: &TierId) {
        self.asked.note(format!("expect {tier}"));
    }
    fn snapshot(&self) -> Vec<TierStatus> {
        self.status.borrow().tiers.clone()
    }
}

//! The tiers as the choice sees them, and how long each took to be had.

use crate::Inference;
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};
use tierbar_core::{
    Error, Modality, ModelId, ModelKind, TierId, TierState,
    lease::{Lease, Purpose},
    status::{EngineKind, TierStatus},
};
use tierbar_routing::{Candidate, Traits};

/// Models whose loads are remembered; there are hardly ever more than a few.
const MOST: usize = 32;

/// How long each model took to be loaded, at its fastest.
#[derive(Debug, Default)]
pub struct Loads(Mutex<BTreeMap<ModelId, Duration>>);

impl Loads {
    fn note(&self, model: &ModelId, took: Duration) {
        let mut loads = self.0.lock();
        if loads.len() < MOST || loads.contains_key(model) {
            let fastest = loads.entry(model.clone()).or_insert(took);
            *fastest = took.min(*fastest);
        }
    }

    fn fastest(&self, model: &ModelId) -> Option<Duration> {
        self.0.lock().get(model).copied()
    }
}

/// A lease on the tier. Notes what it took if the model had to be loaded and no other request was in its way: the end of another tier is
/// then a part of it, since the next time has that too.
pub async fn lease(
    inference: &Inference,
    tier: &TierId,
    purpose: Purpose,
) -> Result<Box<dyn Lease>, Error> {
    let tiers = inference.tiers.snapshot();
    let idle = |tier: &TierStatus| matches!(tier.state, TierState::Stopped | TierState::Ready);
    let loads = tiers.iter().all(idle)
        && tiers
            .iter()
            .any(|status| status.id == *tier && status.state == TierState::Stopped);
    let began = Instant::now();
    let lease = inference.tiers.lease_for(tier, purpose).await?;
    if loads {
        inference.auto.loads.note(lease.model(), began.elapsed());
    }
    Ok(lease)
}

/// Those with a chat model, in reading order.
pub(super) async fn list(
    inference: &Inference,
    tiers: &[TierStatus],
    asked: &Traits,
) -> Vec<Candidate> {
    // Files are looked at for those alone whom it concerns.
    let models = match asked.tools {
        true => inference.models.list().await.map(|listed| listed.models),
        false => Ok(Vec::new()),
    };
    let models = models.unwrap_or_default();
    let calls = |tier: &TierStatus| {
        let mut models = models.iter();
        let model = models.find(|model| model.tiers.contains(&tier.id))?;
        Some(model.account.as_ref()?.tools)
    };
    let candidate = |tier: &TierStatus| {
        let model = tier.model.as_ref()?;
        let load = inference.auto.loads.fastest(model);
        Some(Candidate {
            tier: tier.id.clone(),
            state: tier.state,
            elsewhere: tier.engine == EngineKind::Endpoint,
            context_tokens: tier.context_tokens.into(),
            takes_media: takes_media(tier, asked),
            calls: calls(tier),
            tokens_per_second: inference.speed.usual(model),
            load_seconds: load.map(|took| took.as_secs_f64()),
            under_way: inference.speed.under_way(model) + inference.metrics.waits(&tier.id),
        })
    };
    let chats = tiers.iter().filter(|tier| tier.kind == ModelKind::Chat);
    chats.filter_map(candidate).collect()
}

/// Whether its model takes the images and sound of the request.
fn takes_media(tier: &TierStatus, asked: &Traits) -> Option<bool> {
    let wanted = [
        (asked.images, Modality::Image),
        (asked.sound, Modality::Audio),
    ];
    let mut wanted = wanted.into_iter().filter(|(is_asked, _)| *is_asked);
    wanted.try_fold(true, |all, (_, modality)| {
        Some(all && tier.takes(modality)?)
    })
}

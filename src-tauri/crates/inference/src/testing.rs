//! Tiers for the tests of this crate.

pub(crate) mod streams;

use tierbar_core::{ModelId, TierId, TierState, status::TierStatus};

pub(crate) fn tier(id: &str, model: Option<&str>, state: TierState) -> TierStatus {
    TierStatus {
        model: model.map(|model| ModelId(model.to_owned())),
        context_tokens: 4096,
        ..TierStatus::new(TierId::new(id).unwrap(), state)
    }
}

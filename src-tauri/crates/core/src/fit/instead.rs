//! Which quant of a repository suits a machine, derived from the header of one of them.

use super::{Instead, Machine};
use crate::{
    budget::{MICRO_BATCH, Placement, place},
    config::KvCache,
    model::ModelAccount,
};

/// One quant of the model's repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    pub quant: String,
    /// The reference to download it by, such as `unsloth/Qwen3.5-35B-A3B-GGUF:UD-IQ2_M`.
    pub reference: String,
    /// Of all parts.
    pub size_bytes: u64,
}

/// Above 8-bit quants, which have 8.5 bits per weight and some metadata, a larger file only costs speed.
const MOST_BITS: u64 = 9;

/// Returns the quant for this machine: the largest that stays in memory, or else the one with the least on disk; `None` if
/// none runs. Quants of more than 8 bits are recommended only if there are no others.
///
/// Each quant's bytes are `model`'s, scaled by the files' sizes.
#[must_use]
pub fn recommend(
    model: &ModelAccount,
    context: u32,
    kv: KvCache,
    machine: &Machine,
    offers: &[Offer],
) -> Option<Instead> {
    let budget = machine.budget();
    let too_fine = |size: u64| model.parameters > 0 && size / MOST_BITS > model.parameters / 8;
    let all_too_fine = offers.iter().all(|offer| too_fine(offer.size_bytes));
    offers
        .iter()
        .filter(|offer| offer.size_bytes > 0 && (all_too_fine || !too_fine(offer.size_bytes)))
        .map(|offer| {
            let scaled = model.scaled_to(offer.size_bytes);
            (
                offer,
                place(&scaled, context, kv, MICRO_BATCH, &budget).placement,
            )
        })
        .filter(|(_, placement)| *placement != Placement::Refused)
        .min_by_key(|(offer, placement)| match placement {
            Placement::Resident => (placement.rank(), u64::MAX - offer.size_bytes),
            _ => (placement.rank(), offer.size_bytes),
        })
        .map(|(offer, placement)| Instead {
            quant: offer.quant.clone(),
            reference: offer.reference.clone(),
            size_bytes: offer.size_bytes,
            placement,
        })
}

impl ModelAccount {
    /// Returns the account of the same model in a file of another size, with all weights scaled alike.
    #[must_use]
    pub fn scaled_to(&self, file_bytes: u64) -> Self {
        let scale = |bytes: u64| {
            let product = u128::from(bytes) * u128::from(file_bytes);
            u64::try_from(product / u128::from(self.file_bytes.max(1))).unwrap_or(u64::MAX)
        };
        Self {
            file_bytes,
            dense_bytes: scale(self.dense_bytes),
            embedding_bytes: scale(self.embedding_bytes),
            per_layer_embedding_bytes: scale(self.per_layer_embedding_bytes),
            expert_bytes: scale(self.expert_bytes),
            feed_forward_bytes: scale(self.feed_forward_bytes),
            largest_layer_bytes: scale(self.largest_layer_bytes),
            ..self.clone()
        }
    }
}

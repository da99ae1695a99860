//! Which quant of a repository suits a machine, derived from the header of one of them.

use super::{ContextChoice, Instead, Machine, quality::quality};
use crate::{
    budget::{CompanionModels, Placement},
    model::ModelAccount,
    run::Profile,
};
use serde::{Deserialize, Serialize};

/// One quant of the model's repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    pub quant: String,
    /// The reference to download it by, such as `unsloth/Qwen3.5-35B-A3B-GGUF:UD-IQ2_M`.
    pub reference: String,
    /// Of all parts.
    pub size_bytes: u64,
}

/// Why a quant is the one for a machine. The `reason` beside it says the same in English.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Grounds {
    pub basis: Basis,
    /// The quant whose loss of quality is published: this one, or the one that it is made of. `null` if none is published.
    pub measured: Option<String>,
    /// By how much its perplexity is higher than that of 16 bits, measured with Llama 3 8B: 0.024 is 2.4 %.
    pub perplexity_increase: Option<f64>,
}

/// What decided among the quants of a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The largest that stays in memory, of those whose bits are not known.
    Largest,
    /// The largest that stays in memory, with fewer than 4 bits per weight.
    FewBits,
    /// It stays in memory with 4 to 5 bits per weight.
    Balanced,
    /// The smallest, with more bits, and it stays in memory.
    Smallest,
    /// 4 to 5 bits per weight, of which a part is read from the disk.
    BalancedOnDisk,
    /// None stays in memory, and this one reads the least from the disk.
    LeastFromDisk,
}

/// Up to as many tenths of a bit per weight, a quant is of the class of Q4_K_M: half the bytes of Q8_0 for each token, and so nearly
/// twice its speed, at a loss that few people notice.
const DAILY: u64 = 45;
/// Below as many tenths, quality falls visibly.
const COARSE: u64 = 40;

/// Returns the quant for this machine: of those that stay in memory, the largest of the class of Q4_K_M or below, or else the
/// smallest above; if none stays in memory, the one that reads least from the disk; `None` if none runs. Of those with 4 bits or
/// more, one comes first that leaves room for what is loaded beside it. With [`Profile::Paged`], a mixture of that class is
/// taken also where its experts are read from the disk.
///
/// Each quant's bytes are `model`'s, scaled by the files' sizes.
pub fn recommend(
    model: &ModelAccount,
    beside: CompanionModels<'_>,
    choice: impl Into<ContextChoice>,
    machine: &Machine,
    offers: &[Offer],
) -> Option<Instead> {
    let choice = choice.into();
    let pages = choice.profile == Profile::Paged && model.experts > 0;
    let placed = |offer: &Offer| {
        let scaled = model.scaled_to(offer.size_bytes);
        let settings = choice.settle(&scaled, beside, machine);
        let plan = choice.plan(&scaled, beside, settings, machine);
        let (_, left_out) = beside.split(&plan);
        (plan.placement, left_out.is_empty())
    };
    let bits = |offer: &Offer| {
        let of_file = || tenths_of_bits(offer.size_bytes, model.parameters);
        // A file has up to a bit more than its quant's name says.
        named_tenths(&offer.quant).unwrap_or_else(|| of_file().saturating_sub(10))
    };
    offers
        .iter()
        .filter(|offer| offer.size_bytes > 0)
        .map(|offer| (offer, placed(offer)))
        .filter(|(_, (placement, _))| *placement != Placement::Refused)
        .min_by_key(|(offer, (placement, holds_all))| {
            let is_daily = bits(offer) <= DAILY;
            let has_room = *placement == Placement::Resident && *holds_all;
            let is_complete = has_room && bits(offer) >= COARSE;
            let by_size = if is_daily && (pages || *placement == Placement::Resident) {
                u64::MAX - offer.size_bytes
            } else {
                offer.size_bytes
            };
            let rank = if pages { 0 } else { placement.rank() };
            (rank, !is_daily, !is_complete, by_size)
        })
        .map(|(offer, (placement, _))| {
            let grounds = Grounds::for_offer(&offer.quant, placement, bits(offer));
            Instead {
                quant: offer.quant.clone(),
                reference: offer.reference.clone(),
                size_bytes: offer.size_bytes,
                placement,
                reason: grounds.sentences(),
                grounds: Some(grounds),
            }
        })
}

/// Bits per weight by the name of a quant, such as `UD-IQ2_M`, in tenths. The embeddings of a small model weigh so much that its
/// file's size says less.
fn named_tenths(quant: &str) -> Option<u64> {
    let mut numbers = quant.split(|letter: char| !letter.is_ascii_digit());
    let bits = numbers.find(|digits| !digits.is_empty())?.parse().ok();
    bits.filter(|bits| (1..=32).contains(bits))
        .map(|bits: u64| bits * 10)
}

/// Bits per weight of a file, in tenths; 0 if the number of weights is unknown.
fn tenths_of_bits(file_bytes: u64, parameters: u64) -> u64 {
    let tenths = (u128::from(file_bytes) * 80).checked_div(parameters.into());
    u64::try_from(tenths.unwrap_or_default()).unwrap_or(u64::MAX)
}

impl Grounds {
    fn for_offer(quant: &str, placement: Placement, bits: u64) -> Self {
        let quality = quality(quant);
        Self {
            basis: match (placement, bits) {
                (Placement::Resident, 0) => Basis::Largest,
                (Placement::Resident, ..COARSE) => Basis::FewBits,
                (Placement::Resident, ..=DAILY) => Basis::Balanced,
                (Placement::Resident, _) => Basis::Smallest,
                (_, COARSE..=DAILY) => Basis::BalancedOnDisk,
                _ => Basis::LeastFromDisk,
            },
            measured: quality.map(|quality| quality.measured.to_owned()),
            perplexity_increase: quality.map(|quality| quality.perplexity_increase),
        }
    }

    fn sentences(&self) -> String {
        let basis = match self.basis {
            Basis::Largest => "It is the largest that fits in memory.",
            Basis::FewBits => {
                "It is the largest that fits in memory. Below 4 bits per weight, answers get visibly worse."
            }
            Basis::Balanced => {
                "It fits in memory with 4 to 5 bits per weight, the usual balance of speed and quality."
            }
            Basis::Smallest => "It is the smallest, and it fits in memory.",
            Basis::BalancedOnDisk => {
                "It keeps 4 to 5 bits per weight. What exceeds the memory is read from the disk as needed."
            }
            Basis::LeastFromDisk => {
                "None fits in memory. Of those that run, it reads the least from the disk."
            }
        };
        match (&self.measured, self.perplexity_increase) {
            (Some(measured), Some(increase)) => format!(
                "{basis} Published for {measured} of Llama 3 8B: perplexity {:.1} % above 16 bits.",
                increase * 100.0
            ),
            _ => basis.to_owned(),
        }
    }
}

impl ModelAccount {
    /// Returns the account of the same model in a file of another size, with all weights scaled alike.
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

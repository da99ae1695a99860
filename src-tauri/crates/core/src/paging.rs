//! What is in memory of the models that are larger than it, and what the disks do.

use crate::{ModelId, TierId, budget::Placement};
use serde::{Deserialize, Serialize};

/// The worker's answer to `GET /experts`, which is `null` if all of its weights are in memory or paged by the system.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Residency {
    /// As [`TierPaging::layers`].
    pub layers: Vec<String>,
    pub held_bytes: u64,
    pub all_bytes: u64,
    /// Since the model was loaded: experts that were in memory when they were chosen, and that were not.
    pub hits: u64,
    pub misses: u64,
    pub read_bytes: u64,
    pub waited_ms: f64,
}

/// The answer of `GET /tierbar/v1/paging`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PagingStatus {
    /// The loaded tiers whose experts or layers come and go.
    pub tiers: Vec<TierPaging>,
    /// `null` where the system does not report it, and in the first seconds after the start.
    pub disk: Option<DiskTraffic>,
}

/// The experts of a tier, or the layers of a dense model (`stream`). Counters begin when it is loaded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TierPaging {
    pub tier: TierId,
    pub model: ModelId,
    pub placement: Placement,
    /// A line for each layer, with a character for each of its experts, or of the parts that a dense layer is read in: `.` if
    /// it is not in memory, otherwise a digit from `0`, not used lately, to `9`, used by nearly every token. It is `5` where
    /// uses are not counted.
    pub layers: Vec<String>,
    /// Bytes of the experts in memory, and of all.
    pub held_bytes: u64,
    pub all_bytes: u64,
    /// The part of the chosen experts that was in memory, from 0 to 1; `null` before the first.
    pub hit_rate: Option<f64>,
    pub read_bytes: u64,
    /// The time that computing has waited for the disk, if that is known.
    pub wait_ms: f64,
}

/// What all disks of the machine read and write, each counted once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct DiskTraffic {
    pub read_bytes_per_second: u64,
    pub written_bytes_per_second: u64,
    /// What a day's writing comes to at the rate since Tierbar started; `null` in the first ten minutes. Only writing wears a
    /// solid-state disk.
    pub written_bytes_per_day: Option<u64>,
}

impl TierPaging {
    pub fn new(tier: TierId, model: ModelId, placement: Placement, found: Residency) -> Self {
        let chosen = found.hits + found.misses;
        Self {
            tier,
            model,
            placement,
            layers: found.layers,
            held_bytes: found.held_bytes,
            all_bytes: found.all_bytes,
            hit_rate: (chosen > 0).then(|| found.hits as f64 / chosen as f64),
            read_bytes: found.read_bytes,
            wait_ms: found.waited_ms,
        }
    }

    /// Whether these are the layers of a dense model.
    pub fn is_dense(&self) -> bool {
        self.placement == Placement::Stream
    }

    /// Returns how many experts are in memory, and how many there are.
    pub fn counts(&self) -> (usize, usize) {
        let experts = || self.layers.iter().flat_map(|layer| layer.bytes());
        let held = experts().filter(|expert| *expert != b'.').count();
        (held, experts().count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paging(hits: u64, misses: u64) -> TierPaging {
        let found = Residency {
            layers: vec!["..39".to_owned(), "0...".to_owned()],
            hits,
            misses,
            ..Residency::default()
        };
        let tier = TierId::new("heavy").unwrap();
        TierPaging::new(tier, ModelId("m".to_owned()), Placement::Cache, found)
    }

    #[test]
    fn experts_in_memory_are_counted() {
        assert_eq!(paging(0, 0).counts(), (3, 8));
    }

    #[test]
    fn a_hit_rate_is_unknown_before_the_first_choice() {
        assert_eq!(paging(0, 0).hit_rate, None);
        assert_eq!(paging(3, 1).hit_rate, Some(0.75));
    }
}

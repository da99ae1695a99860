//! Which tiers can be pinned together.

use super::{Holding, Holdings};
use crate::{TierId, budget::Budget};

/// What several pinned tiers need together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pins {
    /// Those that stay loaded together, in the order given.
    pub held: Vec<TierId>,
    /// Those for which there is no memory left.
    pub left_out: Vec<TierId>,
    /// The sum of all plans, in bytes.
    pub total_bytes: u64,
}

/// Returns which of these tiers fit together, in the given order.
#[must_use]
pub fn pins(budget: &Budget, tiers: &[(TierId, Holding)]) -> Pins {
    let mut together = Holdings::default();
    let (mut held, mut left_out) = (Vec::new(), Vec::new());
    for (tier, holding) in tiers {
        let with = together.with(*holding);
        if with.fit(budget) {
            together = with;
            held.push(tier.clone());
        } else {
            left_out.push(tier.clone());
        }
    }
    let all: Holdings = tiers.iter().map(|(_, holding)| *holding).collect();
    Pins {
        held,
        left_out,
        total_bytes: all.total_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pinned_tiers_are_held_as_far_as_they_fit_together() {
        let of = |max_loaded, sizes: &[u64]| {
            let named = |(at, &bytes): (usize, &u64)| {
                let holding = Holding {
                    kind: crate::TierKind::Generative,
                    bytes,
                    reserved_bytes: 0,
                };
                (TierId::new(format!("t{at}")).unwrap(), holding)
            };
            let tiers: Vec<_> = sizes.iter().enumerate().map(named).collect();
            let budget = Budget {
                total_bytes: 10,
                max_loaded,
                paging: crate::run::Paging::Mmap,
                embedder_bytes: 0,
            };
            let Pins {
                held,
                left_out,
                total_bytes,
            } = pins(&budget, &tiers);
            (held.len(), left_out.len(), total_bytes)
        };
        assert_eq!(of(1, &[10]), (1, 0, 10));
        assert_eq!(of(1, &[2, 3]), (1, 1, 5));
        assert_eq!(of(3, &[6, 5, 4]), (2, 1, 15));
        assert_eq!(of(3, &[u64::MAX, u64::MAX]), (0, 2, u64::MAX));
    }
}

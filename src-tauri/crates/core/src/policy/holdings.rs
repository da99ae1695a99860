//! What tiers hold together.

use super::TierView;
use crate::{
    TierId, TierKind,
    budget::{Budget, EMBEDDER_SLOT, LineKind, LoadPlan},
};

/// What one tier holds while it is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holding {
    pub kind: TierKind,
    pub bytes: u64,
    /// Of a generative tier's bytes, those that are left to the embedder's slot.
    pub reserved_bytes: u64,
}

impl From<&LoadPlan> for Holding {
    fn from(plan: &LoadPlan) -> Self {
        Self {
            kind: plan.kind,
            bytes: plan.total_bytes(),
            reserved_bytes: plan.bytes(LineKind::Embedder),
        }
    }
}

impl From<&TierView> for Holding {
    fn from(view: &TierView) -> Self {
        Self {
            kind: view.kind,
            bytes: view.plan_bytes.unwrap_or(0),
            reserved_bytes: view.reserved_bytes,
        }
    }
}

/// The sum of what tiers hold. Embedders count as far as they exceed what the generative tiers leave to them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Holdings {
    generative: usize,
    generative_bytes: u64,
    reserved_bytes: u64,
    embedder_bytes: u64,
}

impl Holdings {
    pub fn total_bytes(&self) -> u64 {
        let beyond = self.embedder_bytes.saturating_sub(self.reserved_bytes);
        self.generative_bytes.saturating_add(beyond)
    }

    /// Returns whether the budget holds all of them.
    pub fn fit(&self, budget: &Budget) -> bool {
        self.total_bytes() <= budget.total_bytes
            && self.generative <= budget.max_loaded
            && self.embedder_bytes <= EMBEDDER_SLOT
    }

    #[must_use]
    pub fn with(mut self, one: Holding) -> Self {
        match one.kind {
            TierKind::Generative => {
                self.generative += 1;
                self.generative_bytes = self.generative_bytes.saturating_add(one.bytes);
                let reserved = one.reserved_bytes.min(one.bytes);
                self.reserved_bytes = self.reserved_bytes.saturating_add(reserved);
            }
            TierKind::Embedder => {
                self.embedder_bytes = self.embedder_bytes.saturating_add(one.bytes);
            }
        }
        self
    }
}

impl FromIterator<Holding> for Holdings {
    fn from_iter<I: IntoIterator<Item = Holding>>(all: I) -> Self {
        all.into_iter().fold(Self::default(), Self::with)
    }
}

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
    use crate::{budget::MIB, run::Paging};

    #[test]
    fn embedders_use_what_generative_plans_leave_to_them() {
        let of = |kind, bytes, reserved_bytes| Holding {
            kind,
            bytes,
            reserved_bytes,
        };
        let chat = of(TierKind::Generative, 8, 2);
        let sum = |embedders: &[u64]| {
            let embedders = embedders.iter();
            let embedders = embedders.map(|bytes| of(TierKind::Embedder, *bytes, 0));
            let all: Holdings = embedders.chain([chat]).collect();
            all.total_bytes()
        };
        assert_eq!(sum(&[]), 8);
        assert_eq!(sum(&[2]), 8);
        assert_eq!(sum(&[1, 3]), 10);
    }

    #[test]
    fn the_slot_and_the_number_of_generative_tiers_are_limited() {
        let budget = Budget {
            total_bytes: 1 << 40,
            max_loaded: 1,
            paging: Paging::Mmap,
            embedder_bytes: 0,
        };
        let fit = |generative: usize, embedders: &[u64]| {
            let of = |kind, bytes| Holding {
                kind,
                bytes,
                reserved_bytes: 0,
            };
            let generative = (0..generative).map(|_| of(TierKind::Generative, MIB));
            let embedders = embedders.iter();
            let embedders = embedders.map(|bytes| of(TierKind::Embedder, *bytes));
            generative
                .chain(embedders)
                .collect::<Holdings>()
                .fit(&budget)
        };
        assert!(fit(1, &[200 * MIB, 312 * MIB]));
        assert!(!fit(1, &[200 * MIB, 313 * MIB]));
        assert!(!fit(2, &[]));
    }

    #[test]
    fn pinned_tiers_are_held_as_far_as_they_fit_together() {
        let of = |max_loaded, sizes: &[u64]| {
            let named = |(at, &bytes): (usize, &u64)| {
                let holding = Holding {
                    kind: TierKind::Generative,
                    bytes,
                    reserved_bytes: 0,
                };
                (TierId::new(format!("t{at}")).unwrap(), holding)
            };
            let tiers: Vec<_> = sizes.iter().enumerate().map(named).collect();
            let budget = Budget {
                total_bytes: 10,
                max_loaded,
                paging: Paging::Mmap,
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

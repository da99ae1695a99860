//! Which experts are held, and which go when others come. Pure: it moves no bytes.

use crate::{
    layout::ExpertIndex,
    picture::{self, UNKNOWN},
};
use std::collections::BTreeSet;

/// Which expert goes first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum EvictionPolicy {
    /// The one that was used longest ago.
    LeastRecent,
    /// The one that was used least, where a use counts half as much after as many tokens (LRFU: Lee et al., *IEEE
    /// Transactions on Computers* 50(12), 2001).
    LeastFrequent { half_life_tokens: f64 },
    /// The one that was used last: in a circle of layers, its next use is farthest away. What comes after the last layer is the
    /// first.
    MostRecent,
}

/// What a cache has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Experts that were held when they were chosen, and that were not.
    pub hits: u64,
    pub misses: u64,
    /// Experts that were being read ahead when they were chosen; they count as hits too.
    pub ahead: u64,
    pub evicted: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EntryState {
    Absent,
    Loading,
    Held,
}

/// An order of leaving: the lowest goes first.
type EvictionRank = (u64, u64);

#[derive(Debug, Clone, Copy)]
struct CacheEntry {
    state: EntryState,
    /// What is computed with it is not over yet.
    in_use: bool,
    /// The base-2 logarithm of its uses' weights, of which one at token t weighs 2^(t / half-life).
    weight: f64,
    rank: EvictionRank,
}

/// The experts that one use needs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct CacheUpdate {
    /// To be read.
    pub(crate) missing: Vec<ExpertIndex>,
    /// To be freed before.
    pub(crate) evicted: Vec<ExpertIndex>,
}

#[derive(Debug)]
pub(crate) struct Cache {
    policy: EvictionPolicy,
    entries: Vec<CacheEntry>,
    /// Pages of each.
    pages: Vec<u64>,
    budget: u64,
    /// Pages of all that is held or being read.
    pub(crate) held: u64,
    /// What may go, by rank.
    order: BTreeSet<(EvictionRank, ExpertIndex)>,
    in_use: Vec<ExpertIndex>,
    uses: u64,
    pub(crate) stats: CacheStats,
}

impl Cache {
    /// Creates an empty cache for units of as many pages each, with a budget in pages.
    pub(crate) fn new(pages: Vec<u64>, budget: u64, policy: EvictionPolicy) -> Self {
        let empty = CacheEntry {
            state: EntryState::Absent,
            in_use: false,
            weight: f64::NEG_INFINITY,
            rank: (0, 0),
        };
        Self {
            policy,
            entries: vec![empty; pages.len()],
            pages,
            budget,
            held: 0,
            order: BTreeSet::new(),
            in_use: Vec::new(),
            uses: 0,
            stats: CacheStats::default(),
        }
    }

    pub(crate) fn is_held(&self, unit: ExpertIndex) -> bool {
        self.entries[unit as usize].state == EntryState::Held
    }

    pub(crate) fn is_absent(&self, unit: ExpertIndex) -> bool {
        self.entries[unit as usize].state == EntryState::Absent
    }

    /// Returns how much a unit was used lately by this token, from 0 to 9; `None` if it is not held.
    pub(crate) fn heat(&self, unit: ExpertIndex, token: u64) -> Option<u8> {
        let heat = match self.policy {
            EvictionPolicy::LeastFrequent { half_life_tokens } => {
                let weight = self.entries[unit as usize].weight;
                picture::heat(weight, token, half_life_tokens)
            }
            // These count no uses.
            EvictionPolicy::LeastRecent | EvictionPolicy::MostRecent => UNKNOWN,
        };
        self.is_held(unit).then_some(heat)
    }

    /// Takes these units for use at this token, and ends the use of those before. What is missing counts as being read
    /// from now on, until [`Self::loaded`] or [`Self::failed`].
    ///
    /// Units in use are never evicted: if they need more than the budget, they exceed it until the next use.
    pub(crate) fn take(&mut self, units: &[ExpertIndex], token: u64) -> CacheUpdate {
        for unit in std::mem::take(&mut self.in_use) {
            self.entries[unit as usize].in_use = false;
            self.offer(unit);
        }
        let mut taken = CacheUpdate::default();
        for &unit in units {
            self.uses += 1;
            let (policy, uses) = (self.policy, self.uses);
            let entry = &mut self.entries[unit as usize];
            if entry.in_use {
                continue;
            }
            self.order.remove(&(entry.rank, unit));
            entry.in_use = true;
            entry.weight = weight_after_use(entry.weight, policy, token);
            entry.rank = match policy {
                EvictionPolicy::MostRecent => (0, u64::MAX - uses),
                // The bits of numbers that are not negative are ordered as these.
                _ => (entry.weight.max(0.0).to_bits(), uses),
            };
            self.in_use.push(unit);
            match entry.state {
                EntryState::Held => self.stats.hits += 1,
                EntryState::Loading => {
                    self.stats.hits += 1;
                    self.stats.ahead += 1;
                }
                EntryState::Absent => {
                    self.stats.misses += 1;
                    entry.state = EntryState::Loading;
                    self.held += self.pages[unit as usize];
                    taken.missing.push(unit);
                }
            }
        }
        taken.evicted = self.evict_to(self.budget);
        taken
    }

    /// Takes those of a coming layer's units that are missing and not busy, as far as the budget allows without evicting one
    /// of them.
    pub(crate) fn take_ahead(
        &mut self,
        units: std::ops::Range<ExpertIndex>,
        is_busy: impl Fn(ExpertIndex) -> bool,
    ) -> CacheUpdate {
        for unit in units.clone() {
            let rank = self.entries[unit as usize].rank;
            self.order.remove(&(rank, unit));
        }
        let mut taken = CacheUpdate::default();
        for unit in units.clone() {
            if !self.is_absent(unit) || is_busy(unit) {
                continue;
            }
            let pages = self.pages[unit as usize];
            let evicted = self.evict_to(self.budget.saturating_sub(pages));
            taken.evicted.extend(evicted);
            if self.held + pages > self.budget {
                break;
            }
            self.held += pages;
            self.entries[unit as usize].state = EntryState::Loading;
            taken.missing.push(unit);
        }
        for unit in units {
            self.offer(unit);
        }
        taken
    }

    /// A unit has been read.
    pub(crate) fn loaded(&mut self, unit: ExpertIndex) {
        self.entries[unit as usize].state = EntryState::Held;
        self.offer(unit);
    }

    /// A unit could not be read.
    pub(crate) fn failed(&mut self, unit: ExpertIndex) {
        self.entries[unit as usize].state = EntryState::Absent;
        self.held -= self.pages[unit as usize];
    }

    /// Sets the budget, and returns what must go at once.
    pub(crate) fn resize(&mut self, budget: u64) -> Vec<ExpertIndex> {
        self.budget = budget;
        self.evict_to(budget)
    }

    /// Lets a unit go when it is its turn, if it is held and not in use.
    fn offer(&mut self, unit: ExpertIndex) {
        let entry = self.entries[unit as usize];
        if entry.state == EntryState::Held && !entry.in_use {
            self.order.insert((entry.rank, unit));
        }
    }

    fn evict_to(&mut self, budget: u64) -> Vec<ExpertIndex> {
        let mut evicted = Vec::new();
        while self.held > budget
            && let Some((_, unit)) = self.order.pop_first()
        {
            self.entries[unit as usize].state = EntryState::Absent;
            self.held -= self.pages[unit as usize];
            self.stats.evicted += 1;
            evicted.push(unit);
        }
        evicted
    }
}

/// The weight after one more use at this token.
fn weight_after_use(weight: f64, policy: EvictionPolicy, token: u64) -> f64 {
    match policy {
        EvictionPolicy::LeastRecent | EvictionPolicy::MostRecent => 0.0,
        EvictionPolicy::LeastFrequent { half_life_tokens } => {
            let now = picture::half_lives(token, half_life_tokens);
            let (more, less) = (weight.max(now), weight.min(now));
            more + (less - more).exp2().ln_1p() / std::f64::consts::LN_2
        }
    }
}

#[cfg(test)]
mod tests;

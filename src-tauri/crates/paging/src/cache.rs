//! Which experts are held, and which go when others come. Pure: it moves no bytes.

use crate::{
    layout::ExpertIndex,
    likelihood::{Likelihood, UseHistory},
    picture::{self, UNKNOWN},
};
use std::ops::Range;

/// Which expert goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvictionPolicy {
    /// The one that the next token is least likely to use, by what is learned of the router's choices.
    LeastLikely,
    /// The one that was used last: in a circle of layers, its next use is farthest away. What comes after the last layer is the
    /// first.
    MostRecent,
}

/// The next to go are found together, one in so many of those that are held: so few that none goes before its time, and so many
/// that a token seldom looks at all experts more than twice.
const VICTIMS_OF: usize = 16;

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

#[derive(Debug, Clone, Copy)]
struct CacheEntry {
    state: EntryState,
    /// What is computed with it is not over yet.
    in_use: bool,
    history: UseHistory,
}

/// An order of leaving: the lowest goes first.
type EvictionRank = (u64, u64, ExpertIndex);

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
    /// What goes next, the first of it last; whatever was used since stays.
    victims: Vec<EvictionRank>,
    in_use: Vec<ExpertIndex>,
    token: u64,
    likelihood: Likelihood,
    pub(crate) stats: CacheStats,
}

impl Cache {
    /// Creates an empty cache for units of as many pages each, with a budget in pages.
    pub(crate) fn new(pages: Vec<u64>, budget: u64, policy: EvictionPolicy) -> Self {
        let empty = CacheEntry {
            state: EntryState::Absent,
            in_use: false,
            history: UseHistory::default(),
        };
        Self {
            policy,
            entries: vec![empty; pages.len()],
            pages,
            budget,
            held: 0,
            victims: Vec::new(),
            in_use: Vec::new(),
            token: 0,
            likelihood: Likelihood::new(),
            stats: CacheStats::default(),
        }
    }

    pub(crate) fn is_held(&self, unit: ExpertIndex) -> bool {
        self.entries[unit as usize].state == EntryState::Held
    }

    pub(crate) fn is_absent(&self, unit: ExpertIndex) -> bool {
        self.entries[unit as usize].state == EntryState::Absent
    }

    /// Returns how likely the next token is to use a unit, from 0 to 9; `None` if it is not held.
    pub(crate) fn heat(&self, unit: ExpertIndex) -> Option<u8> {
        let heat = match self.policy {
            EvictionPolicy::LeastLikely => picture::heat(self.likelihood(unit)),
            EvictionPolicy::MostRecent => UNKNOWN,
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
        }
        if token != self.token {
            self.token = token;
            if self.policy == EvictionPolicy::LeastLikely {
                let histories = self.entries.iter().map(|entry| &entry.history);
                self.likelihood.begin(token, histories);
            }
            self.victims.clear();
        }
        if self.policy == EvictionPolicy::MostRecent {
            self.victims.clear();
        }
        let mut taken = CacheUpdate::default();
        for &unit in units {
            let entry = &mut self.entries[unit as usize];
            if entry.in_use {
                continue;
            }
            entry.in_use = true;
            match self.policy {
                EvictionPolicy::LeastLikely => self.likelihood.learn(&mut entry.history, token),
                EvictionPolicy::MostRecent => entry.history.last = token,
            }
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
        taken.evicted = self.evict_to(self.budget, &(0..0));
        taken
    }

    /// Takes those of a coming layer's units that are missing and not busy, as far as the budget allows without evicting one
    /// of them.
    pub(crate) fn take_ahead(
        &mut self,
        units: Range<ExpertIndex>,
        is_busy: impl Fn(ExpertIndex) -> bool,
    ) -> CacheUpdate {
        let mut taken = CacheUpdate::default();
        for unit in units.clone() {
            if !self.is_absent(unit) || is_busy(unit) {
                continue;
            }
            let pages = self.pages[unit as usize];
            let evicted = self.evict_to(self.budget.saturating_sub(pages), &units);
            taken.evicted.extend(evicted);
            if self.held + pages > self.budget {
                break;
            }
            self.held += pages;
            self.entries[unit as usize].state = EntryState::Loading;
            taken.missing.push(unit);
        }
        taken
    }

    /// A unit has been read.
    pub(crate) fn loaded(&mut self, unit: ExpertIndex) {
        self.entries[unit as usize].state = EntryState::Held;
    }

    /// A unit could not be read.
    pub(crate) fn failed(&mut self, unit: ExpertIndex) {
        self.entries[unit as usize].state = EntryState::Absent;
        self.held -= self.pages[unit as usize];
    }

    /// Sets the budget, and returns what must go at once.
    pub(crate) fn resize(&mut self, budget: u64) -> Vec<ExpertIndex> {
        self.budget = budget;
        self.evict_to(budget, &(0..0))
    }

    /// Evicts others than those `spared`.
    fn evict_to(&mut self, budget: u64, spared: &Range<ExpertIndex>) -> Vec<ExpertIndex> {
        let mut evicted = Vec::new();
        while self.held > budget
            && let Some(unit) = self.next_victim(spared)
        {
            self.entries[unit as usize].state = EntryState::Absent;
            self.held -= self.pages[unit as usize];
            self.stats.evicted += 1;
            evicted.push(unit);
        }
        evicted
    }

    fn next_victim(&mut self, spared: &Range<ExpertIndex>) -> Option<ExpertIndex> {
        while let Some(rank @ (_, _, unit)) = self.victims.pop() {
            if self.may_go(unit, spared) && self.rank(unit) == rank {
                return Some(unit);
            }
        }
        let units = 0..self.entries.len() as ExpertIndex;
        let may_go = units.filter(|&unit| self.may_go(unit, spared));
        let mut victims: Vec<EvictionRank> = may_go.map(|unit| self.rank(unit)).collect();
        let few = victims.len() / VICTIMS_OF;
        if few > 0 {
            victims.select_nth_unstable(few);
            victims.truncate(few);
        }
        victims.sort_unstable_by(|one, other| other.cmp(one));
        self.victims = victims;
        self.victims.pop().map(|(_, _, unit)| unit)
    }

    fn may_go(&self, unit: ExpertIndex, spared: &Range<ExpertIndex>) -> bool {
        let entry = &self.entries[unit as usize];
        entry.state == EntryState::Held && !entry.in_use && !spared.contains(&unit)
    }

    /// Within a token, layers follow each other in the order of their units.
    fn rank(&self, unit: ExpertIndex) -> EvictionRank {
        let last = self.entries[unit as usize].history.last;
        match self.policy {
            // The bits of numbers that are not negative are ordered as these.
            EvictionPolicy::LeastLikely => (self.likelihood(unit).to_bits().into(), last, unit),
            EvictionPolicy::MostRecent => (u64::MAX - last, u64::MAX - u64::from(unit), unit),
        }
    }

    fn likelihood(&self, unit: ExpertIndex) -> f32 {
        let history = &self.entries[unit as usize].history;
        self.likelihood.of(history, self.token)
    }
}

#[cfg(test)]
mod tests;

//! Whether an evaluation with a draft gives the logits of evaluations of one token, bit for bit.
//!
//! A kernel for several rows may add up in another order than one for a single row. The text of a greedy answer must not depend on
//! that, so each kind of evaluation is compared once before its drafts count.

use std::collections::BTreeSet;

/// The cells by which llama.cpp rounds up what an evaluation attends to.
const CELLS: usize = 256;

/// The kinds of evaluations that were compared. Kernels are chosen by the number of rows and by the cells that they attend to: up to
/// the highest that is used, rounded up.
#[derive(Debug, Default)]
pub(in crate::generate) struct Exactness {
    exact: BTreeSet<(usize, usize)>,
    /// The depths at which some kind differs.
    inexact: BTreeSet<u32>,
}

impl Exactness {
    /// Returns whether drafts are exact, as far as is known, in a cache that holds so many tokens. `peak`: how many it may have cells
    /// for, as free ones may lie between others.
    pub(super) fn allows_drafts(&self, tokens: usize, peak: usize) -> bool {
        let depth = depth_of(tokens);
        depth == depth_of(peak) && !self.inexact.contains(&depth)
    }

    /// Returns how many drafted tokens an evaluation may have without attending to more cells than one without.
    pub(super) fn room(tokens: usize) -> usize {
        CELLS - 1 - tokens % CELLS
    }

    /// Returns whether a draft of that length has yet to be compared, in a cache that holds so many tokens.
    pub(super) fn is_unknown(&self, tokens: usize, length: usize) -> bool {
        !self.exact.contains(&(tokens / CELLS, length))
    }

    /// Records the logits of the same token beside a draft and alone. Returns whether they are the same.
    pub(super) fn compare(
        &mut self,
        (tokens, length): (usize, usize),
        beside: &[f32],
        alone: &[f32],
    ) -> bool {
        let beside = beside.iter().map(|logit| logit.to_bits());
        let is_exact = beside.eq(alone.iter().map(|logit| logit.to_bits()));
        if is_exact {
            self.exact.insert((tokens / CELLS, length));
        } else {
            self.inexact.insert(depth_of(tokens));
        }
        is_exact
    }
}

/// The most tokens that all slots held together since the cache was empty: cells that are free now may lie below others. The tokens of
/// one slot alone fill the cells from the first on, so that those that it no longer holds do not count.
#[derive(Debug, Default)]
pub(in crate::generate) struct CellPeak {
    tokens: usize,
    /// Several slots have held tokens since the cache was empty.
    is_mixed: bool,
}

impl CellPeak {
    pub(in crate::generate) fn tokens(&self) -> usize {
        self.tokens
    }

    /// Records how many tokens each slot holds.
    pub(in crate::generate) fn note(&mut self, slots: impl Iterator<Item = usize>) {
        let (mut held, mut holding) = (0, 0);
        for tokens in slots.filter(|tokens| *tokens > 0) {
            held += tokens;
            holding += 1;
        }
        self.is_mixed = holding > 1 || (self.is_mixed && holding > 0);
        self.tokens = match self.is_mixed {
            true => self.tokens.max(held),
            false => held,
        };
    }
}

/// Classes that double: below 256 tokens, below 512, below 1,024 and so on.
fn depth_of(tokens: usize) -> u32 {
    (tokens / CELLS).checked_ilog2().map_or(0, |log| log + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_length_and_number_of_cells_is_compared_once() {
        let mut exactness = Exactness::default();
        assert!(exactness.is_unknown(0, 3));
        assert!(exactness.compare((0, 3), &[1.0, -0.5], &[1.0, -0.5]));
        assert!(!exactness.is_unknown(255, 3));
        assert!(exactness.is_unknown(255, 7));
        assert!(exactness.is_unknown(256, 3));
        assert!(exactness.compare((512, 3), &[1.0], &[1.0]));
        assert!(!exactness.is_unknown(767, 3));
        assert!(exactness.is_unknown(768, 3));
    }

    #[test]
    fn logits_that_differ_in_a_bit_end_drafts_at_that_depth() {
        let mut exactness = Exactness::default();
        assert!(exactness.allows_drafts(600, 600));
        assert!(!exactness.compare((600, 3), &[1.0, 0.0], &[1.0, -0.0]));
        assert!(!exactness.allows_drafts(600, 600) && !exactness.allows_drafts(1000, 1000));
        assert!(exactness.allows_drafts(400, 400) && exactness.allows_drafts(1024, 1024));
    }

    #[test]
    fn cells_of_an_earlier_answer_may_still_count() {
        let exactness = Exactness::default();
        assert!(exactness.allows_drafts(600, 1023));
        assert!(!exactness.allows_drafts(600, 1024));
    }

    #[test]
    fn cells_of_several_slots_count_until_all_are_empty() {
        let mut peak = CellPeak::default();
        for (slots, tokens) in [
            ([900, 0], 900),
            ([300, 0], 300),
            ([300, 400], 700),
            ([300, 0], 700),
            ([0, 0], 0),
            ([0, 200], 200),
        ] {
            peak.note(slots.into_iter());
            assert_eq!(peak.tokens(), tokens, "{slots:?}");
        }
    }

    #[test]
    fn drafts_do_not_reach_into_further_cells() {
        assert_eq!(Exactness::room(0), 255);
        assert_eq!(Exactness::room(504), 7);
        assert_eq!((Exactness::room(511), Exactness::room(512)), (0, 255));
    }
}

//! Whether an evaluation with a draft gives the logits of evaluations of one token, bit for bit.
//!
//! A kernel for several rows may add up in another order than one for a single row. The text of a greedy answer must not depend on
//! that, so each kind of evaluation is compared once before its drafts count.

use std::collections::BTreeSet;

/// The cells by which llama.cpp rounds up what an evaluation attends to.
const CELLS: usize = 256;

/// The kinds of evaluations that were compared. Kernels are chosen by the number of rows and by the depth of the context.
#[derive(Debug, Default)]
pub(in crate::generate) struct Exactness {
    exact: BTreeSet<(u32, usize)>,
    /// The depths at which some kind differs.
    inexact: BTreeSet<u32>,
}

impl Exactness {
    /// Returns whether a cache with so many tokens may hold up to `most` drafted ones: none differs at that depth, and they do not
    /// reach into the next.
    pub(super) fn allows_drafts(&self, tokens: usize, most: usize) -> bool {
        let depth = depth_of(tokens);
        depth == depth_of(tokens + most) && !self.inexact.contains(&depth)
    }

    /// Returns whether a draft of that length has yet to be compared, in a cache that holds so many tokens.
    pub(super) fn is_unknown(&self, tokens: usize, length: usize) -> bool {
        !self.exact.contains(&(depth_of(tokens), length))
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
            self.exact.insert((depth_of(tokens), length));
        } else {
            self.inexact.insert(depth_of(tokens));
        }
        is_exact
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
    fn each_length_and_depth_is_compared_once() {
        let mut exactness = Exactness::default();
        assert!(exactness.is_unknown(0, 3));
        assert!(exactness.compare((0, 3), &[1.0, -0.5], &[1.0, -0.5]));
        assert!(!exactness.is_unknown(255, 3));
        assert!(exactness.is_unknown(255, 7));
        assert!(exactness.is_unknown(256, 3));
        assert!(exactness.compare((512, 3), &[1.0], &[1.0]));
        assert!(!exactness.is_unknown(1023, 3));
        assert!(exactness.is_unknown(1024, 3));
    }

    #[test]
    fn logits_that_differ_in_a_bit_end_drafts_at_that_depth() {
        let mut exactness = Exactness::default();
        assert!(exactness.allows_drafts(600, 7));
        assert!(!exactness.compare((600, 3), &[1.0, 0.0], &[1.0, -0.0]));
        assert!(!exactness.allows_drafts(600, 7) && !exactness.allows_drafts(520, 3));
        assert!(exactness.allows_drafts(400, 7) && exactness.allows_drafts(1024, 7));
    }

    #[test]
    fn drafts_do_not_reach_into_another_depth() {
        let exactness = Exactness::default();
        assert!(exactness.allows_drafts(504, 7));
        assert!(!exactness.allows_drafts(505, 7));
        assert!(exactness.allows_drafts(505, 6));
    }
}

//! Which bytes of a file are there: disjoint ranges, merged where they touch.

use std::collections::BTreeMap;

/// Half-open ranges: start → end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// `None` unless the list is what [`Ranges::list`] would give: sorted, disjoint, nothing empty.
    pub(super) fn from_list(list: &[(u64, u64)]) -> Option<Self> {
        let mut last = None;
        for &(start, end) in list {
            if start >= end || last.is_some_and(|last| start <= last) {
                return None;
            }
            last = Some(end);
        }
        Some(Self(list.iter().copied().collect()))
    }

    pub(super) fn list(&self) -> Vec<(u64, u64)> {
        self.0.iter().map(|(start, end)| (*start, *end)).collect()
    }

    pub(super) fn insert(&mut self, mut start: u64, mut end: u64) {
        if start >= end {
            return;
        }
        // Few ranges lie behind `end`, as pieces are fetched front to back: each step removes one that merges.
        while let Some((&other, &other_end)) = self.0.range(..=end).next_back() {
            if other_end < start {
                break;
            }
            start = start.min(other);
            end = end.max(other_end);
            self.0.remove(&other);
        }
        self.0.insert(start, end);
    }

    /// How far the file is there from its start without a gap.
    pub(super) fn prefix(&self) -> u64 {
        self.0.get(&0).copied().unwrap_or(0)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.0.iter().map(|(start, end)| end - start).sum()
    }

    pub(super) fn end(&self) -> u64 {
        self.0.last_key_value().map_or(0, |(_, end)| *end)
    }

    pub(super) fn truncate(&mut self, end: u64) {
        self.0.split_off(&end);
        if let Some(mut last) = self.0.last_entry() {
            let cut = end.min(*last.get());
            last.insert(cut);
        }
    }

    /// What is missing of `0..total`.
    pub(super) fn gaps(&self, total: u64) -> Vec<(u64, u64)> {
        let mut gaps = Vec::new();
        let mut at = 0;
        for (&start, &end) in &self.0 {
            if at < start {
                gaps.push((at, start.min(total)));
            }
            at = end;
        }
        if at < total {
            gaps.push((at, total));
        }
        gaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranges_hold_the_bytes_that_were_inserted_and_no_others(
            inserted in prop::collection::vec((0u64..60, 0u64..20), 0..30),
            cut in 0u64..90,
        ) {
            let total = 90;
            let mut ranges = Ranges::default();
            let mut bytes = [false; 90];
            for (start, length) in inserted {
                ranges.insert(start, start + length);
                (start..start + length).for_each(|at| bytes[at as usize] = true);
            }
            let check = |ranges: &Ranges, bytes: &[bool; 90]| {
                let mut held = [false; 90];
                for (start, end) in ranges.list() {
                    (start..end).for_each(|at| held[at as usize] = true);
                }
                assert_eq!(&held, bytes);
                let mut missing = [true; 90];
                for (start, end) in ranges.gaps(total) {
                    (start..end).for_each(|at| missing[at as usize] = false);
                }
                assert_eq!(&missing, bytes);
                assert_eq!(ranges.bytes() as usize, bytes.iter().filter(|there| **there).count());
                assert_eq!(ranges.prefix() as usize, bytes.iter().take_while(|there| **there).count());
                assert_eq!(Ranges::from_list(&ranges.list()).as_ref(), Some(ranges));
            };
            check(&ranges, &bytes);
            ranges.truncate(cut);
            bytes[cut as usize..].fill(false);
            check(&ranges, &bytes);
        }
    }

    #[test]
    fn empty_overlapping_or_unsorted_ranges_are_invalid() {
        assert_eq!(Ranges::from_list(&[(3, 3)]), None);
        assert_eq!(Ranges::from_list(&[(5, 3)]), None);
        assert_eq!(Ranges::from_list(&[(0, 4), (3, 6)]), None);
        assert_eq!(Ranges::from_list(&[(7, 9), (0, 4)]), None);
        assert!(Ranges::from_list(&[(0, 4), (5, 6)]).is_some());
    }
}

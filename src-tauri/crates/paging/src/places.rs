//! Runs of pages.

use std::ops::Range;

/// A run of pages of a file, by their numbers.
pub(crate) type PageRange = Range<u64>;

/// Joins runs that overlap or touch.
pub(crate) fn merge_ranges(mut runs: Vec<PageRange>) -> Vec<PageRange> {
    runs.retain(|run| !run.is_empty());
    runs.sort_by_key(|run| run.start);
    let mut merged: Vec<PageRange> = Vec::with_capacity(runs.len());
    for run in runs {
        match merged.last_mut() {
            Some(last) if run.start <= last.end => last.end = last.end.max(run.end),
            _ => merged.push(run),
        }
    }
    merged
}

/// Returns what is left of `runs` without `others`; both merged.
pub(crate) fn gaps_between(runs: &[PageRange], others: &[PageRange]) -> Vec<PageRange> {
    let mut left = Vec::new();
    for run in runs {
        let mut start = run.start;
        for other in others
            .iter()
            .filter(|other| other.end > run.start && other.start < run.end)
        {
            if other.start > start {
                left.push(start..other.start);
            }
            start = start.max(other.end);
        }
        if start < run.end {
            left.push(start..run.end);
        }
    }
    left
}

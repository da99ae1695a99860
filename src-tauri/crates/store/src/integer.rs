//! Unsigned numbers as SQLite's integers, which have a sign.

/// The largest count that is summed: far below the largest integer, so that a year's sums do not reach that.
const MOST_SUMMED: u64 = 1 << 50;

/// Returns a time, a size or a count, none of which reaches the largest integer.
pub(crate) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Returns a count that is summed with others.
pub(crate) fn signed_summand(value: u64) -> i64 {
    signed(value.min(MOST_SUMMED))
}

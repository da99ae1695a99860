//! How fast bytes arrive.

use std::{collections::VecDeque, time::Duration};
use tokio::time::Instant;

/// Long enough to smooth over bursts, short enough that a stall shows.
const WINDOW: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(super) struct Meter {
    samples: VecDeque<(Instant, u64)>,
}

impl Meter {
    /// Takes note of how many bytes there are in all.
    pub(super) fn note(&mut self, now: Instant, bytes: u64) {
        // A restarted download has fewer bytes than before, so its samples are discarded.
        if self.samples.back().is_some_and(|(_, last)| bytes < *last) {
            self.samples.clear();
        }
        self.samples.push_back((now, bytes));
        // The sample at the window's start, or the last before it, stays.
        while self
            .samples
            .get(1)
            .is_some_and(|(at, _)| now.duration_since(*at) >= WINDOW)
        {
            self.samples.pop_front();
        }
    }

    /// Bytes that were there before are not bytes that arrived.
    pub(super) fn reset(&mut self) {
        self.samples.clear();
    }

    /// Bytes per second; 0 before there are two samples.
    pub(super) fn rate(&self) -> u64 {
        let (Some((start, first)), Some((end, last))) = (self.samples.front(), self.samples.back())
        else {
            return 0;
        };
        let milliseconds = end.duration_since(*start).as_millis();
        if milliseconds == 0 {
            return 0;
        }
        let rate = u128::from(last.saturating_sub(*first)) * 1000 / milliseconds;
        u64::try_from(rate).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(meter: &mut Meter, start: Instant, samples: &[(u64, u64)]) -> u64 {
        for (milliseconds, bytes) in samples {
            meter.note(start + Duration::from_millis(*milliseconds), *bytes);
        }
        meter.rate()
    }

    #[test]
    fn the_rate_excludes_bytes_of_earlier_runs() {
        let rate = after(
            &mut Meter::default(),
            Instant::now(),
            &[(0, 1_000_000), (500, 1_000_500), (1000, 1_002_000)],
        );
        assert_eq!(rate, 2000);
    }

    #[test]
    fn the_rate_covers_five_seconds_and_a_stall_is_zero() {
        let (mut meter, start) = (Meter::default(), Instant::now());
        let fast: Vec<_> = (0..=10).map(|s| (s * 1000, s * 10_000)).collect();
        assert_eq!(after(&mut meter, start, &fast), 10_000);
        let stalled = [(11_000, 100_000), (12_500, 100_000)];
        assert_eq!(after(&mut meter, start, &stalled), 5454);
        let longer: Vec<_> = (13..=18).map(|s| (s * 1000, 100_000)).collect();
        assert_eq!(after(&mut meter, start, &longer), 0);
    }

    #[test]
    fn a_file_that_starts_anew_has_no_negative_rate() {
        let (mut meter, start) = (Meter::default(), Instant::now());
        assert_eq!(after(&mut meter, start, &[(0, 0), (1000, 9_000)]), 9000);
        assert_eq!(after(&mut meter, start, &[(2000, 100)]), 0);
        assert_eq!(after(&mut meter, start, &[(3000, 600)]), 500);
    }
}

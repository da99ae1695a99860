//! Change of a level over the last minute, from readings at any pace.

use std::collections::VecDeque;

const WINDOW_MS: u64 = 60_000;

/// The readings of the last minute, and the last one before it.
#[derive(Debug, Default)]
pub(crate) struct GrowthWindow {
    readings: VecDeque<(u64, u64)>,
}

impl GrowthWindow {
    /// Records a reading and returns the change per minute, in the unit of the level.
    ///
    /// During the first minute this is the change since the first reading, not extrapolated, so that the first seconds
    /// cannot raise an alarm. After a gap of more than a minute it is the mean over the gap: a thrashing machine may not be
    /// readable for that long.
    pub(crate) fn record(&mut self, now_ms: u64, level: u64) -> i64 {
        self.readings.push_back((now_ms, level));
        let age = |at: u64| now_ms.saturating_sub(at);
        while self
            .readings
            .get(1)
            .is_some_and(|&(at, _)| age(at) >= WINDOW_MS)
        {
            self.readings.pop_front();
        }
        let Some(&(since, base)) = self.readings.front() else {
            return 0;
        };
        let change = i128::from(level) - i128::from(base);
        let window = i128::from(WINDOW_MS);
        let elapsed = i128::from(age(since)).max(window);
        let per_minute = change * window / elapsed;
        i64::try_from(per_minute).unwrap_or(if per_minute < 0 { i64::MIN } else { i64::MAX })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn seconds(readings: &[(u64, u64)]) -> Vec<i64> {
        let mut growth = GrowthWindow::default();
        readings
            .iter()
            .map(|&(at, level)| growth.record(at * 1000, level))
            .collect()
    }

    #[test]
    fn the_first_reading_has_no_growth() {
        assert_eq!(seconds(&[(0, 8_000 * MIB)]), [0]);
    }

    #[test]
    fn the_first_seconds_are_not_extrapolated_to_a_minute() {
        assert_eq!(seconds(&[(0, 0), (1, 10)]), [0, 10]);
    }

    #[test]
    fn steady_growth_reads_as_growth_per_minute() {
        let readings: Vec<_> = (0..=300).step_by(2).map(|at| (at, at * MIB)).collect();
        let growth = seconds(&readings);
        assert!(
            growth[30..].iter().all(|&growth| growth == 60 * MIB as i64),
            "{growth:?}"
        );
    }

    #[test]
    fn growth_ends_a_minute_after_the_level_stopped_rising() {
        let growth = seconds(&[
            (0, 0),
            (10, 500),
            (30, 500),
            (69, 500),
            (70, 500),
            (71, 500),
        ]);
        assert_eq!(growth, [0, 500, 500, 434, 0, 0]);
    }

    #[test]
    fn a_shrinking_level_grows_negatively() {
        assert_eq!(seconds(&[(0, 900), (60, 300)]), [0, -600]);
    }

    #[test]
    fn a_pause_is_averaged_over_its_length() {
        assert_eq!(seconds(&[(0, 0), (600, 1000)]), [0, 100]);
    }

    #[test]
    fn extreme_levels_do_not_overflow() {
        assert_eq!(seconds(&[(0, u64::MAX), (60, 0)]), [0, i64::MIN]);
        assert_eq!(seconds(&[(0, 0), (60, u64::MAX)]), [0, i64::MAX]);
    }

    #[test]
    fn the_ring_holds_about_a_minute() {
        let mut growth = GrowthWindow::default();
        for second in 0..10_000 {
            growth.record(second * 1000, second);
        }
        assert!(growth.readings.len() <= 62, "{}", growth.readings.len());
    }
}

//! The readings of the last ten minutes, and the minutes that they form.

use std::collections::VecDeque;
use tierbar_core::{
    history::{ModelUse, Point, merge_points},
    reading::Reading,
};

/// How far back single seconds go.
pub const RECENT_MINUTES: u64 = 10;
const RECENT_MS: u64 = RECENT_MINUTES * 60_000;
/// One for each second, even if the time of day is set back repeatedly.
const MOST_POINTS: usize = 600;
const MOST_OF_A_MINUTE: usize = 120;

/// A ring of seconds, and the current minute. It has one owner.
#[derive(Debug, Default)]
pub struct RecentReadings {
    /// Each with the time since the system started, by which it ages, because the time of day may be set.
    seconds: VecDeque<(u64, Point)>,
    /// Seconds of the same minute.
    minute: Vec<Point>,
}

impl RecentReadings {
    /// Records a reading at `at`, in seconds since 1970. Returns the previous minute if this reading starts another; after
    /// the time of day was set back, a minute can occur twice.
    pub fn record(&mut self, at: u64, reading: &Reading, models: ModelUse) -> Option<Point> {
        let point = Point::from_reading(at, reading, models);
        match self.seconds.back_mut() {
            Some((_, last)) if last.at == at => *last = merge_points(at, &[last, &point]),
            _ => self.seconds.push_back((reading.at_ms, point.clone())),
        }
        while self.seconds.len() > MOST_POINTS
            || self
                .seconds
                .front()
                .is_some_and(|(ms, _)| reading.at_ms.saturating_sub(*ms) >= RECENT_MS)
        {
            self.seconds.pop_front();
        }
        let another = self
            .minute
            .first()
            .is_some_and(|first| first.at / 60 != at / 60);
        let over = if another { self.close() } else { None };
        if self.minute.len() == MOST_OF_A_MINUTE {
            self.minute = self.now().into_iter().collect();
        }
        self.minute.push(point);
        over
    }

    /// Returns the current minute so far.
    pub fn now(&self) -> Option<Point> {
        let first = self.minute.first()?;
        let points: Vec<_> = self.minute.iter().collect();
        Some(merge_points(first.at / 60 * 60, &points))
    }

    /// Returns the current minute so far, and starts another.
    pub fn close(&mut self) -> Option<Point> {
        let over = self.now();
        self.minute.clear();
        over
    }

    /// Returns the seconds of the last ten minutes, oldest first.
    pub fn seconds(&self) -> Vec<Point> {
        self.seconds
            .iter()
            .map(|(_, point)| point.clone())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(at_ms: u64, swap: u64) -> Reading {
        Reading {
            at_ms,
            swap_used_bytes: Some(swap),
            ..Reading::default()
        }
    }

    fn record(recent: &mut RecentReadings, at: u64, reading: &Reading) -> Option<Point> {
        recent.record(at, reading, ModelUse::default())
    }

    #[test]
    fn a_minute_is_returned_once_over_or_on_request() {
        let mut recent = RecentReadings::default();
        assert_eq!(recent.now(), None);
        for second in 0..60 {
            assert_eq!(
                record(&mut recent, 600 + second, &reading(second * 1000, 50)),
                None
            );
        }
        let minute = record(&mut recent, 660, &reading(60_000, 10)).unwrap();
        assert_eq!((minute.at, minute.samples), (600, 60));
        assert_eq!(minute.swap_used_bytes.unwrap().mean, 50.0);
        let open = recent.now().unwrap();
        assert_eq!((open.at, open.samples), (660, 1));
        assert_eq!(recent.close(), Some(open));
        assert_eq!(recent.close(), None);
    }

    #[test]
    fn seconds_expire_after_ten_minutes_of_monotonic_time() {
        let mut recent = RecentReadings::default();
        record(&mut recent, 1000, &reading(0, 1));
        // The time of day is set a year ahead.
        record(&mut recent, 31_000_000, &reading(RECENT_MS - 1, 2));
        assert_eq!(recent.seconds().len(), 2);
        record(&mut recent, 31_000_001, &reading(RECENT_MS, 3));
        let left: Vec<_> = recent.seconds().iter().map(|point| point.at).collect();
        assert_eq!(left, [31_000_000, 31_000_001]);
    }

    #[test]
    fn readings_of_the_same_second_are_one_point() {
        let mut recent = RecentReadings::default();
        record(&mut recent, 5, &reading(0, 10));
        record(&mut recent, 5, &reading(300, 30));
        let seconds = recent.seconds();
        assert_eq!((seconds.len(), seconds[0].samples), (1, 2));
        let swap = seconds[0].swap_used_bytes.unwrap();
        assert_eq!((swap.mean, swap.max), (20.0, 30.0));
    }

    #[test]
    fn the_history_is_bounded_even_if_the_clock_is_set() {
        let mut recent = RecentReadings::default();
        // Two seconds of the same minute, again and again, within ten minutes.
        for count in 0..100_000 {
            record(&mut recent, count % 2, &reading(count, 1));
        }
        assert!(recent.seconds.len() <= MOST_POINTS);
        assert!(recent.minute.len() <= MOST_OF_A_MINUTE);
        assert_eq!(recent.now().unwrap().samples, 100_000);
        let bytes = (MOST_POINTS + MOST_OF_A_MINUTE) * size_of::<(u64, Point)>();
        assert!(bytes <= 256 << 10, "{bytes}");
    }
}

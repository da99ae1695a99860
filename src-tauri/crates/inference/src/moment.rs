//! Moments by two clocks: the one that cannot be set stops while the machine sleeps, on macOS as on Linux, and the other can be set. What
//! the machine has slept tells the two apart.

use std::time::{Duration, SystemTime};
use tierbar_telemetry::asleep;
use tokio::time::Instant;

/// Ordinary corrections are smaller.
const TOLERATED: Duration = Duration::from_secs(1);

/// A moment by both clocks.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    pub wall: SystemTime,
    pub at: Instant,
    /// How long the machine has slept by then.
    pub asleep: Duration,
}

impl Moment {
    pub fn now() -> Self {
        Self {
            wall: SystemTime::now(),
            at: Instant::now(),
            asleep: asleep(),
        }
    }

    /// Returns the time to a later moment, by the clock on which it is longer: sleep counts, and no wait becomes longer because the
    /// clock is set back.
    pub fn until(self, later: Self) -> Duration {
        let by_wall = later.wall.duration_since(self.wall).unwrap_or_default();
        by_wall.max(later.at.duration_since(self.at))
    }

    pub fn elapsed(self) -> Duration {
        self.until(Self::now())
    }

    /// Returns by how many milliseconds the clock was set between this moment and a later one; they are negative if it was set back.
    pub fn clock_set_until(self, later: Self) -> Option<i64> {
        let slept = later.asleep.saturating_sub(self.asleep);
        let expected = self.wall + later.at.duration_since(self.at) + slept;
        let (by, sign) = match later.wall.duration_since(expected) {
            Ok(ahead) => (ahead, 1),
            Err(behind) => (behind.duration(), -1),
        };
        let by_ms = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        (by > TOLERATED).then_some(sign * by_ms)
    }
}

/// A clock that never goes back and counts sleep.
#[derive(Debug)]
pub struct Clock {
    latest: Moment,
    passed: Duration,
}

impl Clock {
    pub fn starting(latest: Moment) -> Self {
        let passed = Duration::ZERO;
        Self { latest, passed }
    }

    /// Returns the time since its start. A moment before the latest one, of a thread that was overtaken, adds nothing.
    pub fn read(&mut self, now: Moment) -> Duration {
        if now.at >= self.latest.at {
            self.passed += self.latest.until(now);
            self.latest = now;
        }
        self.passed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    /// A moment after a minute awake, with the clock that much further.
    fn after_a_minute(first: Moment, wall: Duration) -> Moment {
        Moment {
            wall: first.wall + wall,
            at: first.at + Duration::from_secs(60),
            ..first
        }
    }

    #[test]
    fn a_clock_that_was_set_is_reported_and_sleep_is_not() {
        let first = Moment::now();
        let (minute, none) = (Duration::from_secs(60), Duration::ZERO);
        let set = |wall: Duration, slept: Duration| {
            let later = Moment {
                asleep: first.asleep + slept,
                ..after_a_minute(first, wall)
            };
            first.clock_set_until(later)
        };
        assert_eq!(set(minute, none), None);
        assert_eq!(set(minute - minute / 100, none), None, "a correction");
        assert_eq!(set(minute + 8 * HOUR, 8 * HOUR), None, "a sleep");
        assert_eq!(set(minute + 8 * HOUR, none), Some(8 * 3_600_000));
        assert_eq!(set(none, none), Some(-60_000));
    }

    #[test]
    fn the_time_between_moments_includes_sleep() {
        let first = Moment::now();
        let until = |wall| first.until(after_a_minute(first, wall));
        assert_eq!(until(8 * HOUR), 8 * HOUR);
        assert_eq!(until(Duration::ZERO), Duration::from_secs(60), "set back");
    }

    #[test]
    fn a_clock_counts_sleep_and_never_goes_back() {
        let first = Moment::now();
        let mut clock = Clock::starting(first);
        let slept = after_a_minute(first, 8 * HOUR);
        assert_eq!(clock.read(slept), 8 * HOUR);
        let set_back = Moment {
            wall: first.wall,
            at: slept.at + HOUR,
            ..first
        };
        assert_eq!(clock.read(set_back), 9 * HOUR);
        assert_eq!(clock.read(set_back), 9 * HOUR);
    }

    #[test]
    fn moments_out_of_order_are_counted_once() {
        let first = Moment::now();
        let mut clock = Clock::starting(first);
        let minute = Duration::from_secs(60);
        let late = after_a_minute(first, minute);
        let early = |wall: Duration| Moment {
            wall: first.wall + wall,
            at: first.at + minute / 2,
            ..first
        };
        assert_eq!(clock.read(late), minute);
        // The second one: the clock was set in between.
        for wall in [minute / 2, HOUR] {
            assert_eq!(clock.read(early(wall)), minute, "{wall:?}");
            assert_eq!(clock.read(late), minute, "{wall:?}");
        }
    }
}

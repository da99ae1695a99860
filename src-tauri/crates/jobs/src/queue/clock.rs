//! The system's clock, which may be set back. The queue's waits are times of it, because they outlive the host.

use super::millis;
use std::time::{Duration, Instant};

/// Ordinary corrections are smaller.
const TOLERATED: Duration = Duration::from_secs(1);

/// A moment by the system's clock and by the one that cannot be set.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) wall_ms: u64,
    pub(super) at: Instant,
}

impl Moment {
    pub(super) fn now() -> Self {
        Self {
            wall_ms: super::now_ms(),
            at: Instant::now(),
        }
    }

    /// Returns by how many milliseconds the clock was set back between this moment and a later one.
    pub(super) fn set_back_until(self, later: Self) -> Option<u64> {
        let passed = millis(later.at.duration_since(self.at));
        let expected = self.wall_ms.saturating_add(passed);
        let behind = expected.saturating_sub(later.wall_ms);
        (behind > millis(TOLERATED)).then_some(behind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clock_that_was_set_back_is_reported() {
        let first = Moment {
            wall_ms: 10_000_000,
            at: Instant::now(),
        };
        let after_a_minute = |wall_ms| Moment {
            wall_ms,
            at: first.at + Duration::from_secs(60),
        };
        let set_back = |wall_ms| first.set_back_until(after_a_minute(wall_ms));
        assert_eq!(set_back(10_060_000), None);
        assert_eq!(set_back(10_059_500), None, "a correction");
        assert_eq!(
            set_back(99_000_000),
            None,
            "set forward, or the machine slept"
        );
        assert_eq!(set_back(6_460_000), Some(3_600_000));
    }
}

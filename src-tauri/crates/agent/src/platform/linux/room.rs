//! How many processes and threads a command may have. The kernel's own limit does not hold root, and counts what else the user runs.
//! The filter hands each new one to the launcher instead, which lets it begin while there is room.

use super::tree;
use std::time::{Duration, Instant};

/// How long a count without room holds: counting takes longer than a refusal, and a fork bomb asks at once again.
const FULL: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(super) struct Room {
    most: u64,
    /// How many may begin before all are counted again.
    left: u64,
    /// When they were counted and there was no room.
    full: Option<Instant>,
}

impl Room {
    pub(super) fn new(most: u64) -> Self {
        Self {
            most,
            left: 0,
            full: None,
        }
    }

    /// Whether one more may begin.
    pub(super) fn take(&mut self) -> bool {
        self.take_at(Instant::now(), tree::tasks)
    }

    /// As [`Room::take`]. What was let in and has not begun yet is not counted, so that there may be twice as many for a moment, and
    /// no more.
    fn take_at(&mut self, now: Instant, tasks: impl FnOnce() -> u64) -> bool {
        if self.left == 0 {
            if self.full.is_some_and(|full| now < full + FULL) {
                return false;
            }
            self.left = self.most.saturating_sub(tasks());
            self.full = (self.left == 0).then_some(now);
        }
        let may_begin = self.left > 0;
        self.left = self.left.saturating_sub(1);
        may_begin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_begin_than_there_is_room_for() {
        let mut room = Room::new(3);
        let now = Instant::now();
        assert!(room.take_at(now, || 1));
        let uncounted = || -> u64 { unreachable!() };
        assert!(room.take_at(now, uncounted));
        assert!(!room.take_at(now, || 3));
        // Not counted again at once.
        assert!(!room.take_at(now, uncounted));
        assert!(room.take_at(now + FULL, || 2));
        assert!(!room.take_at(now + FULL, || 4));
    }
}

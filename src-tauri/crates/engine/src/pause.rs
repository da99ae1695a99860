//! Pauses the engine for a while, at the host's request, while another program needs the machine.

use parking_lot::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// How often a paused engine checks whether a client still waits.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

#[derive(Debug, Default)]
pub(crate) struct Pause {
    until: Mutex<Option<Instant>>,
    changed: Condvar,
}

impl Pause {
    /// Pauses from now on for `length`; zero ends the pause.
    pub(crate) fn set(&self, length: Duration) {
        *self.until.lock() = Some(Instant::now() + length);
        self.changed.notify_all();
    }

    pub(crate) fn left(&self) -> Duration {
        time_left(*self.until.lock())
    }

    /// Waits until the pause is over or `wanted` returns `false`. Returns the last result of `wanted`.
    pub(crate) fn wait(&self, mut wanted: impl FnMut() -> bool) -> bool {
        while wanted() {
            let mut until = self.until.lock();
            let left = time_left(*until);
            if left.is_zero() {
                return true;
            }
            self.changed.wait_for(&mut until, left.min(POLL_INTERVAL));
        }
        false
    }
}

fn time_left(until: Option<Instant>) -> Duration {
    until.map_or(Duration::ZERO, |until| {
        until.saturating_duration_since(Instant::now())
    })
}

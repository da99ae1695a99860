//! Pauses the engine for a while, at the host's request, while another program needs the machine.

use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

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
        *self.until() = Some(Instant::now() + length);
        self.changed.notify_all();
    }

    pub(crate) fn left(&self) -> Duration {
        time_left(*self.until())
    }

    /// Waits until the pause is over or `wanted` returns `false`. Returns the last result of `wanted`.
    pub(crate) fn wait(&self, mut wanted: impl FnMut() -> bool) -> bool {
        while wanted() {
            let until = self.until();
            let left = time_left(*until);
            if left.is_zero() {
                return true;
            }
            let _woken = self.changed.wait_timeout(until, left.min(POLL_INTERVAL));
        }
        false
    }

    fn until(&self) -> MutexGuard<'_, Option<Instant>> {
        self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn time_left(until: Option<Instant>) -> Duration {
    until.map_or(Duration::ZERO, |until| {
        until.saturating_duration_since(Instant::now())
    })
}

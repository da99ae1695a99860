//! The engine stands still for a while when the host asks it to: something else needs the machine now.

use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// How often it is looked whether somebody still waits while the engine stands still.
const LOOK: Duration = Duration::from_millis(20);

#[derive(Debug, Default)]
pub(crate) struct Pause {
    until: Mutex<Option<Instant>>,
    changed: Condvar,
}

impl Pause {
    /// From now on; for no time at all it ends.
    pub(crate) fn set(&self, length: Duration) {
        *self.until() = Some(Instant::now() + length);
        self.changed.notify_all();
    }

    pub(crate) fn left(&self) -> Duration {
        left(*self.until())
    }

    /// Waits until there is no pause, or nobody to wait for. Answers whether there is somebody: what `wanted` said last.
    pub(crate) fn stand(&self, mut wanted: impl FnMut() -> bool) -> bool {
        while wanted() {
            let until = self.until();
            let left = left(*until);
            if left.is_zero() {
                return true;
            }
            let _woken = self.changed.wait_timeout(until, left.min(LOOK));
        }
        false
    }

    fn until(&self) -> MutexGuard<'_, Option<Instant>> {
        self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn left(until: Option<Instant>) -> Duration {
    until.map_or(Duration::ZERO, |until| {
        until.saturating_duration_since(Instant::now())
    })
}

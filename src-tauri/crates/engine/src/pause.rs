//! The engine stands still for a while when the host asks it to: something else needs the machine now.

use std::{
    sync::{Condvar, Mutex, PoisonError},
    time::{Duration, Instant},
};

#[derive(Debug, Default)]
pub(crate) struct Pause {
    until: Mutex<Option<Instant>>,
    changed: Condvar,
}

impl Pause {
    /// From now on; for no time at all it ends.
    pub(crate) fn set(&self, length: Duration) {
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        *until = Some(Instant::now() + length);
        self.changed.notify_all();
    }

    pub(crate) fn left(&self) -> Duration {
        let until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        until.map_or(Duration::ZERO, |until| {
            until.saturating_duration_since(Instant::now())
        })
    }

    /// Waits until the pause is over or changed, and not longer than that.
    pub(crate) fn wait(&self, most: Duration) {
        let most = most.min(self.left());
        let until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        let _woken = self.changed.wait_timeout(until, most);
    }
}

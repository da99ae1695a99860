//! Wishes that the engine give up what only saves time.

use std::sync::{Mutex, PoisonError};
use tokio::sync::oneshot;

/// Those who wish it, until the engine's thread comes by.
#[derive(Debug, Default)]
pub(crate) struct Trims(Mutex<Vec<oneshot::Sender<u64>>>);

impl Trims {
    /// Tells how many bytes were given up.
    pub(crate) fn ask(&self) -> oneshot::Receiver<u64> {
        let (told, wait) = oneshot::channel();
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push(told);
        wait
    }

    pub(crate) fn take(&self) -> Vec<oneshot::Sender<u64>> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

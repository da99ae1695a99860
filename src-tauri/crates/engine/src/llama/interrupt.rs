//! Ending an evaluation from another thread.

use std::sync::atomic::{AtomicBool, Ordering, fence};

/// Ends a running or waiting evaluation, from any thread.
///
/// A requester writes its reason before the request, and the engine thread reads the reasons after arming, so that one of
/// the two sees the other.
#[derive(Debug, Default)]
pub(crate) struct Interrupt {
    requested: AtomicBool,
    allowed: AtomicBool,
    /// The evaluation cannot go on, allowed or not.
    pub(super) stopped: AtomicBool,
}

impl Interrupt {
    pub(crate) fn request(&self) {
        fence(Ordering::SeqCst);
        self.requested.store(true, Ordering::Release);
    }

    /// Clears earlier requests, and sets whether an evaluation may be interrupted from now on.
    pub(crate) fn arm(&self, allowed: bool) {
        self.allowed.store(allowed, Ordering::Relaxed);
        self.requested.store(false, Ordering::Release);
        fence(Ordering::SeqCst);
    }

    /// Forbids interrupting a running evaluation until this is armed again. A waiting one may still end.
    pub(crate) fn forbid(&self) {
        self.allowed.store(false, Ordering::Relaxed);
    }

    pub(super) fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Acquire)
    }

    /// Ends the running evaluation, which has failed.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
    }

    pub(super) fn is_due(&self) -> bool {
        let requested = self.requested.load(Ordering::Relaxed);
        (requested && self.allowed.load(Ordering::Relaxed)) || self.stopped.load(Ordering::Relaxed)
    }
}

//! Requests to free the caches of the engine.

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// The pending requests, until the engine thread takes them.
#[derive(Debug, Default)]
pub(crate) struct TrimRequests(Mutex<Vec<oneshot::Sender<u64>>>);

impl TrimRequests {
    /// Requests a trim. The receiver gets the number of bytes freed.
    pub(crate) fn request(&self) -> oneshot::Receiver<u64> {
        let (reply, wait) = oneshot::channel();
        self.0.lock().push(reply);
        wait
    }

    pub(crate) fn take(&self) -> Vec<oneshot::Sender<u64>> {
        std::mem::take(&mut *self.0.lock())
    }
}

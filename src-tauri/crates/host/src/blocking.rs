//! Work that waits for a disk or for the system, off the threads that serve.

use tierbar_core::{Code, Error};
use tokio::task::spawn_blocking;

/// `what` did not finish if it breaks off.
pub(crate) async fn blocking<T: Send + 'static>(
    what: &str,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    spawn_blocking(work).await.unwrap_or_else(|ended| {
        let message = format!("{what} did not finish: {ended}");
        Err(Error::new(Code::Internal, message))
    })
}

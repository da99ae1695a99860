//! Blocking work, off the threads that serve requests.

use tierbar_core::{Code, Error};
use tokio::task::spawn_blocking;

/// Runs blocking work; if it panics, the error says that `what` did not finish.
pub(crate) async fn blocking<T: Send + 'static>(
    what: &str,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    spawn_blocking(work).await.unwrap_or_else(|ended| {
        let message = format!("{what} did not finish: {ended}");
        Err(Error::new(Code::Internal, message))
    })
}

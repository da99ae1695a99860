//! Storing what took long to make: tried until the disk takes it.

use std::time::Duration;
use tierbar_core::Error;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// The pause after a failure of the store: the disk is full, or slow.
pub(crate) const AGAIN: Duration = Duration::from_secs(5);

/// Repeats `store` until it succeeds; once `closing`, for the last time. Returns `false` if it never did.
pub(crate) async fn until_stored<F>(
    closing: &CancellationToken,
    what: &str,
    mut store: impl FnMut() -> F,
) -> bool
where
    F: Future<Output = Result<(), Error>>,
{
    loop {
        let last = closing.is_cancelled();
        let Err(error) = store().await else {
            return true;
        };
        tracing::error!("{what} cannot be stored: {error}");
        if last {
            return false;
        }
        let _closed = closing.run_until_cancelled(sleep(AGAIN)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{cell::Cell, future::ready};
    use tierbar_core::Code;

    fn full() -> Result<(), Error> {
        Err(Error::new(Code::Storage, "the volume is full"))
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_tried_until_the_disk_takes_it() {
        let (closing, tries) = (CancellationToken::new(), Cell::new(0));
        let store = || {
            tries.set(tries.get() + 1);
            ready(if tries.get() < 4 { full() } else { Ok(()) })
        };
        assert!(until_stored(&closing, "an answer", store).await);
        assert_eq!(tries.get(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn an_ending_host_tries_once_more() {
        let (closing, tries) = (CancellationToken::new(), Cell::new(0));
        let store = || {
            tries.set(tries.get() + 1);
            if tries.get() == 3 {
                closing.cancel();
            }
            ready(full())
        };
        assert!(!until_stored(&closing, "an answer", store).await);
        assert_eq!(tries.get(), 4);
    }
}

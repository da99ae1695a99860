//! Health checks: a process can be alive and hang.

use super::socket::status_at;
use std::{io, time::Duration};
use tierbar_core::lease::Address;
use tokio::time::{Instant, sleep_until, timeout};

/// Consecutive checks without an answer after which a worker counts as hung.
const MISSES: u32 = 6;

/// Checks every `period`; returns when the worker has not answered [`MISSES`] times in a row, and for how long.
pub(super) async fn wait_until_lost(worker: &Address, period: Duration) -> Duration {
    wait_until_checks_fail(period, period, || status_at(worker, "GET /health")).await
}

/// Like [`wait_until_lost`], with another check whose answer may take up to `patience`. Any answer shows that the process runs.
pub(super) async fn wait_until_checks_fail<T, F>(
    period: Duration,
    patience: Duration,
    check: impl Fn() -> F,
) -> Duration
where
    F: Future<Output = io::Result<T>>,
{
    let (mut misses, mut answered) = (0, Instant::now());
    let mut next = answered + period;
    while misses < MISSES {
        sleep_until(next).await;
        next = Instant::now() + period;
        misses = match timeout(patience, check()).await {
            Ok(Ok(_)) => {
                answered = Instant::now();
                0
            }
            Ok(Err(_)) | Err(_) => misses + 1,
        };
    }
    answered.elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{cell::Cell, future::pending};

    const PERIOD: Duration = Duration::from_secs(5);

    #[tokio::test(start_paused = true)]
    async fn a_silence_is_reported_as_long_as_it_was() {
        let begun = Instant::now();
        let (answers, last) = (Cell::new(3), Cell::new(begun));
        let (answers_left, last_answer) = (&answers, &last);
        let check = || async move {
            if answers_left.get() == 0 {
                return pending().await;
            }
            answers_left.set(answers_left.get() - 1);
            last_answer.set(Instant::now());
            Ok(())
        };
        let silent = wait_until_checks_fail(PERIOD, PERIOD, check).await;
        assert_eq!(last.get() - begun, PERIOD * 3);
        assert_eq!(silent, last.get().elapsed());
        // Each check begins a period after the one before, whether that was answered or not.
        assert_eq!(silent, PERIOD * (MISSES + 1));
    }

    #[tokio::test(start_paused = true)]
    async fn refused_connections_are_checked_no_faster() {
        let refusal = || io::ErrorKind::ConnectionRefused.into();
        let check = || std::future::ready(io::Result::<()>::Err(refusal()));
        let silent = wait_until_checks_fail(PERIOD, PERIOD, check).await;
        assert_eq!(silent, PERIOD * MISSES);
    }
}

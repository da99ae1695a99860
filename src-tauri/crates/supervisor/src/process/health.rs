//! Whether a loaded worker still answers: a process can live and hang.

use super::question::ask;
use std::{path::Path, time::Duration};
use tokio::time::{sleep, timeout};

/// Questions in a row without an answer that make a worker a hung one.
pub(super) const MISSES: u32 = 6;

/// Asks every `period`; returns when the worker has not answered [`MISSES`] times in a row.
pub(super) async fn lost(socket: &Path, period: Duration) {
    let mut misses = 0;
    while misses < MISSES {
        sleep(period).await;
        misses = match timeout(period, ask(socket, "GET /health")).await {
            Ok(Ok(())) => 0,
            Ok(Err(_)) | Err(_) => misses + 1,
        };
    }
}

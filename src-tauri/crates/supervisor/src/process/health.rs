//! Health checks: a process can be alive and hang.

use super::socket::{send_request, status};
use std::{io, path::Path, time::Duration};
use tierbar_core::lease::Address;
use tokio::{
    net::{TcpStream, UnixStream},
    time::{sleep, timeout},
};

/// Consecutive checks without an answer after which a worker counts as hung.
pub(super) const MISSES: u32 = 6;

/// Checks every `period`; returns when the worker has not answered [`MISSES`] times in a row.
pub(super) async fn wait_until_lost(socket: &Path, period: Duration) {
    wait_until_checks_fail(period, period, || send_request(socket, "GET /health")).await;
}

/// Like [`wait_until_lost`], with another check whose answer may take up to `patience`.
pub(super) async fn wait_until_checks_fail<F>(
    period: Duration,
    patience: Duration,
    check: impl Fn() -> F,
) where
    F: Future<Output = io::Result<()>>,
{
    let mut misses = 0;
    while misses < MISSES {
        sleep(period).await;
        misses = match timeout(patience, check()).await {
            Ok(Ok(())) => 0,
            Ok(Err(_)) | Err(_) => misses + 1,
        };
    }
}

/// Returns the status of a command's health path.
///
/// # Errors
/// `InvalidData` if the answer is not HTTP.
pub(super) async fn status_at(at: &Address, path: &str) -> io::Result<u16> {
    match at {
        Address::Unix(socket) => status(UnixStream::connect(socket).await?, path).await,
        Address::Port(port) => status(TcpStream::connect(("127.0.0.1", *port)).await?, path).await,
        Address::Url(_) => Err(io::ErrorKind::Unsupported.into()),
    }
}

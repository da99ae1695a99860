//! Whether a loaded worker still answers: a process can live and hang.

use super::socket::{request, status};
use std::{io, path::Path, time::Duration};
use tierbar_core::lease::Address;
use tokio::{
    net::{TcpStream, UnixStream},
    time::{sleep, timeout},
};

/// Questions in a row without an answer that make a worker a hung one.
pub(super) const MISSES: u32 = 6;

/// Asks every `period`; returns when the worker has not answered [`MISSES`] times in a row.
pub(super) async fn lost(socket: &Path, period: Duration) {
    lost_by(period, period, || request(socket, "GET /health")).await;
}

/// As [`lost`], by another way of asking, whose answer may take as long as `patience`.
pub(super) async fn lost_by<F>(period: Duration, patience: Duration, check: impl Fn() -> F)
where
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

/// The status that a command's health path answers with.
///
/// # Errors
/// `InvalidData` for what is no HTTP.
pub(super) async fn status_at(at: &Address, path: &str) -> io::Result<u16> {
    match at {
        Address::Unix(socket) => status(UnixStream::connect(socket).await?, path).await,
        Address::Port(port) => status(TcpStream::connect(("127.0.0.1", *port)).await?, path).await,
        Address::Url(_) => Err(io::ErrorKind::Unsupported.into()),
    }
}

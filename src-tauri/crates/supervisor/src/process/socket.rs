//! Short requests to a worker or command, besides those that the gateway relays.

use std::{io, time::Duration};
use tierbar_core::lease::Address;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpStream, UnixStream},
    time::timeout,
};

/// A worker answers between two evaluations.
const TRIMMING: Duration = Duration::from_secs(10);

/// Asks a worker to drop what it keeps only for later. A retry would not help.
pub(crate) async fn trim(worker: &Address) {
    match timeout(TRIMMING, status_at(worker, "POST /trim")).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a worker freed no memory"),
        Err(_) => tracing::debug!("a worker did not answer a request to free memory"),
    }
}

/// Returns the status of the answer to a request without a body; `request` is its method and path.
///
/// # Errors
/// `InvalidData` if the answer is not HTTP.
pub(super) async fn status_at(at: &Address, request: &str) -> io::Result<u16> {
    match at {
        Address::Unix(socket) => status(UnixStream::connect(socket).await?, request).await,
        Address::Port(port) => {
            status(TcpStream::connect(("127.0.0.1", *port)).await?, request).await
        }
        Address::Url(_) => Err(io::ErrorKind::Unsupported.into()),
    }
}

async fn status(mut stream: impl AsyncRead + AsyncWrite + Unpin, request: &str) -> io::Result<u16> {
    let request = format!("{request} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    // `HTTP/1.1 200`
    let mut start = [0; 12];
    stream.read_exact(&mut start).await?;
    let version = [&b"HTTP/1.1 "[..], b"HTTP/1.0 "];
    let status = version
        .iter()
        .find_map(|version| start.strip_prefix(*version));
    let status = status.and_then(|digits| str::from_utf8(digits).ok()?.parse().ok());
    status.ok_or_else(|| {
        let start = String::from_utf8_lossy(&start);
        let what = format!("answered with something other than HTTP: {:?}", &*start);
        io::Error::new(io::ErrorKind::InvalidData, what)
    })
}

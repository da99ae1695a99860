//! Whether a loaded worker still answers: a process can live and hang.

use std::{io, path::Path, time::Duration};
use tierbar_core::lease::Address;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpStream, UnixStream},
    time::{sleep, timeout},
};

/// Questions in a row without an answer that make a worker a hung one.
pub(super) const MISSES: u32 = 6;

/// Asks every `period`; returns when the worker has not answered [`MISSES`] times in a row.
pub(super) async fn lost(socket: &Path, period: Duration) {
    lost_by(period, || ask(socket)).await;
}

/// As [`lost`], by another way of asking.
pub(super) async fn lost_by<F>(period: Duration, ask: impl Fn() -> F)
where
    F: Future<Output = io::Result<()>>,
{
    let mut misses = 0;
    while misses < MISSES {
        sleep(period).await;
        misses = match timeout(period, ask()).await {
            Ok(Ok(())) => 0,
            Ok(Err(_)) | Err(_) => misses + 1,
        };
    }
}

/// Any answer will do: what counts is that there is one.
async fn ask(socket: &Path) -> io::Result<()> {
    let mut stream = UnixStream::connect(socket).await?;
    stream
        .write_all(b"GET /health HTTP/1.1\r\nHost: worker\r\nConnection: close\r\n\r\n")
        .await?;
    stream.read_u8().await.map(|_| ())
}

/// The status that a command's health path answers with.
///
/// # Errors
/// `InvalidData` for what is no HTTP.
pub(super) async fn ask_at(at: &Address, path: &str) -> io::Result<u16> {
    match at {
        Address::Unix(socket) => status(UnixStream::connect(socket).await?, path).await,
        Address::Port(port) => status(TcpStream::connect(("127.0.0.1", *port)).await?, path).await,
        Address::Url(_) => Err(io::ErrorKind::Unsupported.into()),
    }
}

async fn status(mut stream: impl AsyncRead + AsyncWrite + Unpin, path: &str) -> io::Result<u16> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
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
        let what = format!("answered with something else than HTTP: {:?}", &*start);
        io::Error::new(io::ErrorKind::InvalidData, what)
    })
}

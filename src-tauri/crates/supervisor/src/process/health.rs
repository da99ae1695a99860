//! Whether a loaded worker still answers: a process can live and hang.

use std::{io, path::Path, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    time::{sleep, timeout},
};

/// Questions in a row without an answer that make a worker a hung one.
pub(super) const MISSES: u32 = 6;

/// Asks every `period`; returns when the worker has not answered [`MISSES`] times in a row.
pub(super) async fn lost(socket: &Path, period: Duration) {
    let mut misses = 0;
    while misses < MISSES {
        sleep(period).await;
        misses = match timeout(period, ask(socket)).await {
            Ok(Ok(())) => 0,
            Ok(Err(_)) | Err(_) => misses + 1,
        };
    }
}

/// Any answer will do, if it is one: what counts is that somebody thinks.
async fn ask(socket: &Path) -> io::Result<()> {
    let mut stream = UnixStream::connect(socket).await?;
    stream
        .write_all(b"GET /health HTTP/1.1\r\nHost: worker\r\nConnection: close\r\n\r\n")
        .await?;
    let mut start = [0; 5];
    stream.read_exact(&mut start).await?;
    if start == *b"HTTP/" {
        Ok(())
    } else {
        Err(io::ErrorKind::InvalidData.into())
    }
}

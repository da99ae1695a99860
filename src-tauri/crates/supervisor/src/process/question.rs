//! A short question to a worker, beside the requests that the gateway relays.

use std::{io, path::Path};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
};

/// `line`: a request's method and path. Any answer will do, if it is one: what counts is that somebody thinks.
pub(super) async fn ask(socket: &Path, line: &str) -> io::Result<()> {
    let mut stream = UnixStream::connect(socket).await?;
    let question = format!(
        "{line} HTTP/1.1\r\nHost: worker\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(question.as_bytes()).await?;
    let mut start = [0; 5];
    stream.read_exact(&mut start).await?;
    if start == *b"HTTP/" {
        Ok(())
    } else {
        Err(io::ErrorKind::InvalidData.into())
    }
}

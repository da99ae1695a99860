//! A short request to a worker or command, besides those that the gateway relays.

use std::{io, path::Path};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::UnixStream,
};

/// Sends a request; `line` is its method and path. Any answer will do, since it shows that the process runs.
pub(super) async fn send_request(socket: &Path, line: &str) -> io::Result<()> {
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

/// Returns the status of a path.
///
/// # Errors
/// `InvalidData` if the answer is not HTTP.
pub(super) async fn status(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    path: &str,
) -> io::Result<u16> {
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
        let what = format!("answered with something other than HTTP: {:?}", &*start);
        io::Error::new(io::ErrorKind::InvalidData, what)
    })
}

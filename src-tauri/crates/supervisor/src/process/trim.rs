//! A loaded worker gives back what it can do without, and goes on.

use std::{io, path::Path, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    time::timeout,
};

/// It answers between two evaluations.
const DEADLINE: Duration = Duration::from_secs(10);

/// Has it drop what it keeps for later alone. One that does not is not helped by being asked again.
pub(crate) async fn trim(socket: &Path) {
    match timeout(DEADLINE, ask(socket)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a worker gave nothing back"),
        Err(_) => tracing::debug!("a worker was asked to give memory back and did not answer"),
    }
}

async fn ask(socket: &Path) -> io::Result<()> {
    let mut stream = UnixStream::connect(socket).await?;
    stream
        .write_all(
            b"POST /trim HTTP/1.1\r\nHost: worker\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        )
        .await?;
    stream.read_u8().await.map(|_| ())
}

//! A bound for messages, of which each is a line: a server that sends an endless one is ended, and not waited for.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
};
use tokio::io::{AsyncRead, ReadBuf};

/// The longest message, in bytes. No model reads as much.
pub(crate) const MESSAGE_BYTES: usize = 4 << 20;

/// Reads lines, and fails at one that is too long.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    inner: R,
    /// Of the line that is being read.
    length: usize,
    too_long: Arc<AtomicBool>,
}

impl<R> Lines<R> {
    /// `too_long` becomes true at such a line.
    pub(crate) fn new(inner: R, too_long: Arc<AtomicBool>) -> Self {
        Self {
            inner,
            length: 0,
            too_long,
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Lines<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.inner).poll_read(context, buffer))?;
        for part in buffer.filled()[before..].split_inclusive(|byte| *byte == b'\n') {
            this.length += part.len();
            if this.length > MESSAGE_BYTES {
                this.too_long.store(true, Ordering::Relaxed);
                return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
            }
            if part.ends_with(b"\n") {
                this.length = 0;
            }
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    async fn read(bytes: &[u8]) -> (io::Result<usize>, bool) {
        let too_long = Arc::new(AtomicBool::new(false));
        let mut lines = Lines::new(bytes, Arc::clone(&too_long));
        let mut read = Vec::new();
        let read = lines.read_to_end(&mut read).await;
        (read, too_long.load(Ordering::Relaxed))
    }

    #[tokio::test]
    async fn lines_are_bounded_and_their_number_is_not() {
        let line = [vec![b'x'; MESSAGE_BYTES - 1], vec![b'\n']].concat();
        let (all, too_long) = read(&line.repeat(3)).await;
        assert_eq!(all.unwrap(), 3 * MESSAGE_BYTES);
        assert!(!too_long);
        let (all, too_long) = read(&vec![b'x'; MESSAGE_BYTES + 1]).await;
        assert!(all.is_err() && too_long);
    }
}

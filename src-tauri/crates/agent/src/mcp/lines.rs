//! A bound for messages, of which each is a line: a server that sends an endless one, or one whose values would take much memory, is
//! ended, and not waited for.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
};
use tierbar_core::json::ValuesCounter;
use tokio::io::{AsyncRead, ReadBuf};

/// The longest message, in bytes. No model reads as much.
pub(crate) const MESSAGE_BYTES: usize = 4 << 20;

/// The memory that the values of a message may take.
pub(crate) const MESSAGE_MEMORY: usize = 24 << 20;

/// Reads lines, and fails at one that is too long or takes too much memory.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    inner: R,
    /// Of the line that is being read.
    length: usize,
    values: ValuesCounter,
    too_long: Arc<AtomicBool>,
}

impl<R> Lines<R> {
    /// `too_long` becomes true at such a line.
    pub(crate) fn new(inner: R, too_long: Arc<AtomicBool>) -> Self {
        Self {
            inner,
            length: 0,
            values: ValuesCounter::default(),
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
            let memory = this.values.add(part);
            if this.length > MESSAGE_BYTES || memory > MESSAGE_MEMORY {
                this.too_long.store(true, Ordering::Relaxed);
                return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
            }
            if part.ends_with(b"\n") {
                (this.length, this.values) = (0, ValuesCounter::default());
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
        let values = |count: usize| format!("[{}0]\n", "[0],".repeat(count));
        let (all, too_long) = read(values(30_000).repeat(3).as_bytes()).await;
        assert!(all.is_ok() && !too_long);
        let (all, too_long) = read(values(40_000).as_bytes()).await;
        assert!(all.is_err() && too_long);
    }
}

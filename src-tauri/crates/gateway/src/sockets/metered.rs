//! A stream whose bytes are charged as they arrive, so that a message that is still arriving has been paid for.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tierbar_edge::keys::Weight;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::Instant,
};

#[derive(Debug)]
pub(super) struct MeteredStream<S> {
    stream: S,
    /// Of what has arrived and is not in a request yet.
    pub(super) weight: Weight,
    /// When anything arrived last.
    pub(super) read_at: Instant,
    /// What arrives is thrown away, and costs nothing.
    pub(super) is_over: bool,
}

impl<S> MeteredStream<S> {
    pub(super) fn new(stream: S, weight: Weight) -> Self {
        Self {
            stream,
            weight,
            read_at: Instant::now(),
            is_over: false,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for MeteredStream<S> {
    /// Fails with an [`Error`](tierbar_core::Error) inside while there is no room for more.
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let more = buffer.filled().len() - before;
        if more > 0 {
            self.read_at = Instant::now();
            if !self.is_over {
                self.weight.grow(more).map_err(io::Error::other)?;
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for MeteredStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

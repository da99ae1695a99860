//! A request's body, copied while it is read: its bytes are shared, not doubled.

use crate::body::INFERENCE_LIMIT;
use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
};

/// What has been read of a body.
#[derive(Debug, Clone, Default)]
pub(super) struct Copy(Arc<Mutex<Read>>);

#[derive(Debug, Default)]
struct Read {
    pieces: Vec<Bytes>,
    length: usize,
    ended: bool,
}

struct Copied {
    body: Body,
    copy: Copy,
}

impl Copy {
    /// The body, and the copy that its reader makes.
    pub(super) fn of(body: Body) -> (Body, Self) {
        let copy = Self::default();
        let copied = Copied {
            body,
            copy: copy.clone(),
        };
        (Body::new(copied), copy)
    }

    /// All of it; `None` if it was not read to its end, or is too large.
    pub(super) fn whole(&self) -> Option<Vec<u8>> {
        let read = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (read.ended && read.length <= INFERENCE_LIMIT).then(|| read.pieces.concat())
    }

    fn note(&self, frame: Option<&Frame<Bytes>>) {
        let mut read = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(frame) = frame else {
            read.ended = true;
            return;
        };
        if let Some(data) = frame.data_ref() {
            read.length = read.length.saturating_add(data.len());
            if read.length <= INFERENCE_LIMIT {
                read.pieces.push(data.clone());
            } else {
                read.pieces = Vec::new();
            }
        }
    }
}

impl HttpBody for Copied {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        match &frame {
            Some(Ok(frame)) => self.copy.note(Some(frame)),
            None => self.copy.note(None),
            Some(Err(_)) => {}
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

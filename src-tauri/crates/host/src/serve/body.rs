//! Bodies that update their connection's slot.

use super::slots::TakenSlot;
use axum::body::{Body as AxumBody, Bytes};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

/// A request's body. It is complete, or no longer needed, when this is dropped.
pub(super) struct RequestBody {
    body: Incoming,
    taken: Arc<TakenSlot>,
    whole: bool,
}

impl RequestBody {
    pub(super) fn new(body: Incoming, taken: Arc<TakenSlot>) -> Self {
        let whole = body.is_end_stream();
        if whole {
            taken.answers();
        } else {
            taken.waits();
        }
        Self { body, taken, whole }
    }

    fn is_whole(&mut self) {
        if !std::mem::replace(&mut self.whole, true) {
            self.taken.answers();
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if frame.is_none() || self.body.is_end_stream() {
            self.is_whole();
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

impl Drop for RequestBody {
    fn drop(&mut self) {
        self.is_whole();
    }
}

/// An answer's body. After it, the client may send another request.
pub(super) struct Answer {
    body: AxumBody,
    taken: Arc<TakenSlot>,
}

impl Answer {
    pub(super) fn new(body: AxumBody, taken: Arc<TakenSlot>) -> Self {
        Self { body, taken }
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.taken.waits();
    }
}

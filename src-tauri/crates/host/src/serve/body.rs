//! Bodies that update their connection's slot.

use super::slots::TakenSlot;
use axum::body::{Body as AxumBody, Bytes};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use std::{
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

/// A body, and what its end means for the slot.
pub(super) struct SlotBody<B> {
    body: B,
    taken: Arc<TakenSlot>,
    at_end: fn(&TakenSlot),
    /// Whether the end counts only when this is dropped.
    lasts: bool,
    has_ended: bool,
}

/// A request's body. It is complete, or no longer needed, when this is dropped.
pub(super) fn request(body: Incoming, taken: Arc<TakenSlot>) -> SlotBody<Incoming> {
    let has_ended = body.is_end_stream();
    match has_ended {
        true => taken.answers(),
        false => taken.waits(),
    }
    SlotBody {
        body,
        taken,
        at_end: TakenSlot::answers,
        lasts: false,
        has_ended,
    }
}

/// An answer's body. After it, the client may send another request.
pub(super) fn answer(body: AxumBody, taken: Arc<TakenSlot>) -> SlotBody<AxumBody> {
    SlotBody {
        body,
        taken,
        at_end: TakenSlot::waits,
        lasts: true,
        has_ended: false,
    }
}

impl<B> SlotBody<B> {
    fn end(&mut self) {
        if !mem::replace(&mut self.has_ended, true) {
            (self.at_end)(&self.taken);
        }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for SlotBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if !self.lasts && (frame.is_none() || self.body.is_end_stream()) {
            self.end();
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

impl<B> Drop for SlotBody<B> {
    fn drop(&mut self) {
        self.end();
    }
}

//! An admitted request: it counts, and is charged to its key, until the end of its answer.

use super::{Key, Weight};
use axum::body::{Body, Bytes};
use http_body::{Body as HttpBody, Frame, SizeHint};
use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tierbar_inference::caller::{Account, Caller};

/// An admitted request. It counts until it is dropped.
#[derive(Debug)]
pub struct AdmittedRequest {
    pub(super) key: Option<Arc<Key>>,
    pub(super) weight: Weight,
}

impl Drop for AdmittedRequest {
    fn drop(&mut self) {
        if let Some(key) = &self.key {
            key.leave();
        }
        self.weight.keys.leave();
    }
}

impl AdmittedRequest {
    fn caller(&self) -> Caller {
        match self.key.clone() {
            Some(key) => Caller::from(key as Arc<dyn Account>),
            None if self.weight.is_owner => Caller::Owner,
            None => Caller::Program,
        }
    }

    pub async fn answers<F: Future>(&self, answering: F) -> F::Output {
        self.caller().scope(answering).await
    }

    /// Returns the answer's body, which keeps its request counted until its end.
    pub fn with(self, body: Body) -> Body {
        Body::new(CountedBody {
            caller: self.caller(),
            body,
            _held: self,
        })
    }
}

impl Weight {
    /// Returns the answer's body, which keeps its request charged until its end.
    pub fn with(self, body: Body) -> Body {
        Body::new(CountedBody {
            caller: Caller::default(),
            body,
            _held: self,
        })
    }
}

/// The fields are dropped in order: the answer ends before its request does.
struct CountedBody<T> {
    body: Body,
    caller: Caller,
    _held: T,
}

impl<T: Unpin> HttpBody for CountedBody<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Self { body, caller, .. } = &mut *self;
        caller.sync_scope(|| Pin::new(body).poll_frame(context))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

//! Who pays for what is being answered. It goes with the request's task and not with its arguments: between who may ask and
//! what an answer took lie all the dialects, none of which has anything to do with it.

use super::{Key, Weight};
use axum::body::{Body, Bytes};
use http_body::{Body as HttpBody, Frame, SizeHint};
use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

tokio::task_local! {
    static PAYS: Payer;
}

/// Whose tokens an answer takes, if anybody counts them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Payer(Option<Arc<Key>>);

impl From<Arc<Key>> for Payer {
    fn from(key: Arc<Key>) -> Self {
        Self(Some(key))
    }
}

impl Payer {
    /// The key of the request that is being answered on this task.
    pub(crate) fn of_this_request() -> Self {
        PAYS.try_with(Clone::clone).unwrap_or_default()
    }

    pub(crate) fn counts(&self) -> bool {
        self.0.is_some()
    }

    /// What the key is called, if there is one.
    pub(crate) fn name(&self) -> Option<String> {
        self.0.as_ref().map(|key| key.name.clone())
    }

    pub(crate) async fn pays_for<F: Future>(&self, answering: F) -> F::Output {
        PAYS.scope(self.clone(), answering).await
    }

    pub(crate) fn spend(&self, tokens: u64) {
        if let Some(key) = &self.0 {
            key.spend(tokens);
        }
    }
}

/// A request that was let in. It counts until it is dropped.
#[derive(Debug)]
pub(crate) struct Admitted {
    pub(super) key: Option<Arc<Key>>,
    pub(super) weight: Weight,
}

impl Drop for Admitted {
    fn drop(&mut self) {
        if let Some(key) = &self.key {
            key.leave();
        }
        self.weight.keys.leave();
    }
}

impl Admitted {
    fn payer(&self) -> Payer {
        Payer(self.key.clone())
    }

    pub(crate) async fn pays_for<F: Future>(&self, answering: F) -> F::Output {
        self.payer().pays_for(answering).await
    }

    /// The answer, which keeps its request counted until its end, and has it paid for while it streams.
    pub(crate) fn with(self, body: Body) -> Body {
        Body::new(Paid {
            payer: self.payer(),
            body,
            _admitted: self,
        })
    }
}

/// The fields are dropped in order: the answer ends before its request does.
struct Paid {
    body: Body,
    payer: Payer,
    _admitted: Admitted,
}

impl HttpBody for Paid {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Self { body, payer, .. } = &mut *self;
        PAYS.sync_scope(payer.clone(), || Pin::new(body).poll_frame(context))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

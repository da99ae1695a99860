//! What answers say of themselves beside their words, and a task's response after them: who answered, in whose place, and whether the
//! request may wait.

use crate::inference::{chain::MayWait, source::Source};
use axum::{http::HeaderMap, response::Response};
use parking_lot::Mutex;
use std::sync::Arc;

/// Of the questions about one text. Shared by who asks them and who answers with what came of it.
#[derive(Debug, Clone, Default)]
pub(super) struct Trail(Arc<Mutex<Notes>>);

#[derive(Debug, Default)]
struct Notes {
    headers: HeaderMap,
    may_wait: bool,
}

impl Trail {
    /// An answer or a refusal. What it does not say stays as it was: that one of many pieces was read by another tier than the wanted one
    /// is worth knowing, though the last one was not.
    pub(super) fn note(&self, source: &Source, may_wait: bool) {
        let mut said = self.0.lock();
        said.headers.extend(source.headers());
        said.may_wait = may_wait;
    }

    pub(super) fn write(&self, response: &mut Response) {
        let said = self.0.lock();
        for (name, value) in &said.headers {
            response.headers_mut().insert(name.clone(), value.clone());
        }
        if said.may_wait {
            response.extensions_mut().insert(MayWait);
        }
    }
}

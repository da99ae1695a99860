//! Where a task's answers came from, for the headers of its response: the tiers that answered, in whose place, and whether the request
//! may wait.

use axum::{http::HeaderMap, response::Response};
use parking_lot::Mutex;
use std::sync::Arc;
use tierbar_inference::{dispatch::QueuePermission, source::Source};

/// Of the questions about one text. Shared by the code that asks them and the code that writes the response.
#[derive(Debug, Clone, Default)]
pub(super) struct Trail(Arc<Mutex<Notes>>);

#[derive(Debug, Default)]
struct Notes {
    headers: HeaderMap,
    may_wait: bool,
}

impl Trail {
    /// Notes an answer or a refusal. What it does not name stays as it was, so that the response shows if one of many pieces was read by
    /// another tier.
    pub(super) fn note(&self, source: &Source, may_wait: bool) {
        let mut notes = self.0.lock();
        notes.headers.extend(source.headers());
        notes.may_wait = may_wait;
    }

    pub(super) fn write(&self, response: &mut Response) {
        let notes = self.0.lock();
        for (name, value) in &notes.headers {
            response.headers_mut().insert(name.clone(), value.clone());
        }
        if notes.may_wait {
            response.extensions_mut().insert(QueuePermission);
        }
    }
}

//! What one tier answers: `attempt` leases it and calls its worker, `streaming` passes the events on while they arrive, `gathered` reads
//! them to a whole answer.
//!
//! Nothing here is a task of its own. When a client disconnects, the server drops the handler or the body, and with it the wait for the
//! tier, or the worker's connection and the lease.

mod answered;
pub(crate) mod attempt;
pub(crate) mod gathered;
pub(crate) mod streaming;
pub(crate) mod unstreamed;

use super::{
    charge::Charge, content::Content, original::Original, source::Source, stream_meter::Reads,
};
use crate::metrics::Trace;
use axum::http::HeaderMap;
use std::time::Instant;
use tierbar_chats::context::ContextUse;
use tierbar_core::{
    ModelId, TierId,
    lease::{KeepAlive, Lease},
};

/// What each attempt sends.
#[derive(Clone)]
pub(crate) struct UpstreamRequest {
    pub(crate) path: &'static str,
    pub(crate) content: Content,
    /// The same in its client's form, for servers that speak it.
    pub(crate) original: Option<Original>,
    /// The client's headers that belong to its dialect.
    pub(crate) headers: HeaderMap,
    /// The answer is to come as events.
    pub(crate) stream: bool,
    /// What is made of the answer's events.
    pub(crate) reads: Reads,
    pub(crate) keep_alive: Option<KeepAlive>,
    pub(crate) arrived: Instant,
    pub(crate) charge: Charge,
    pub(crate) trace: Trace,
}

pub(crate) fn who_answers(tier: &TierId, model: Option<&ModelId>) -> HeaderMap {
    let source = Source {
        tier: Some(tier.clone()),
        model: model.cloned(),
        ..Source::default()
    };
    source.headers()
}

/// The same of an answer that is complete, with how full its context was, if that is known.
fn who_answered(lease: &dyn Lease, context: Option<ContextUse>) -> HeaderMap {
    let source = Source {
        tier: Some(lease.tier().clone()),
        model: Some(lease.model().clone()),
        context,
        ..Source::default()
    };
    source.headers()
}

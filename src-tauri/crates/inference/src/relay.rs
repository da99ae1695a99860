//! What one tier answers: `attempt` leases it and calls its worker, `streaming` passes the events on while they arrive, `gathered` reads
//! them to a whole answer.
//!
//! Nothing here is a task of its own. When a client disconnects, the server drops the handler or the body, and with it the wait for the
//! tier, or the worker's connection and the lease.

mod answered;
pub mod attempt;
mod brief;
pub mod gathered;
pub mod streaming;
pub mod unstreamed;

use super::{
    charge::Charge, content::Content, original::Original, source::Source,
    stream_meter::StreamReading,
};
use crate::metrics::Trace;
use http::HeaderMap;
use std::time::Instant;
use tierbar_chats::context::ContextUse;
use tierbar_core::{
    ModelId, TierId,
    lease::{KeepAlive, Lease, Purpose},
};

/// What each attempt sends.
#[derive(Debug, Clone)]
pub struct UpstreamRequest {
    pub path: &'static str,
    pub content: Content,
    /// The same in its client's form, for servers that speak it.
    pub original: Option<Original>,
    /// The client's headers that belong to its dialect.
    pub headers: HeaderMap,
    /// The answer is to come as events.
    pub stream: bool,
    /// What is made of the answer's events.
    pub reads: StreamReading,
    pub keep_alive: Option<KeepAlive>,
    pub arrived: Instant,
    /// `Background` if no client waits for the answer.
    pub purpose: Purpose,
    pub charge: Charge,
    pub trace: Trace,
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

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

use crate::source::Source;
use http::HeaderMap;
use tierbar_chats::context::ContextUse;
use tierbar_core::lease::Lease;

/// The headers of an answer: who gives it, and of a complete one how full its context was, if that is known.
pub(crate) fn who_answers(lease: &dyn Lease, context: Option<ContextUse>) -> HeaderMap {
    let source = Source {
        tier: Some(lease.tier().clone()),
        model: Some(lease.model().clone()),
        context,
        ..Source::default()
    };
    source.headers()
}

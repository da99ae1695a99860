//! Jobs with an answer of a fixed form: triage, compress, summarize, brief. Each asks a model through the same relay as any
//! client, so that tiers, leases and errors are the same, and holds it to a schema.

mod ask;
mod batch;
mod brief;
mod compact;
mod compress;
mod exam;
pub mod message;
pub mod scheduled;
mod schema;
mod stream;
mod summarize;
mod triage;

pub(crate) use summarize::of_chat as summary_of_chat;

use crate::Jobs;
use std::sync::Arc;
use tierbar_http::{mount::Routes, routes};
use tierbar_tasks::aggregate::Aggregate;
use utoipa::OpenApi;

#[derive(OpenApi)]
#[openapi(components(schemas(Aggregate)))]
struct Components;

pub fn routes() -> Routes<Arc<Jobs>> {
    Routes::described::<Components>()
        .routes(routes!(triage::triage))
        .routes(routes!(compress::compress))
        .routes(routes!(summarize::summarize))
        .routes(routes!(brief::brief))
        .routes(routes!(compact::compact))
}

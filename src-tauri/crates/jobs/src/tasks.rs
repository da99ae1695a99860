//! Jobs with an answer of a fixed form: triage, compress, summarize, brief. Each asks a model through the same relay as any
//! client, so that tiers, leases and errors are the same, and holds it to a schema.

mod ask;
mod batch;
mod brief;
mod compact;
mod compress;
pub mod message;
pub mod scheduled;
mod schema;
mod stream;
mod summarize;
mod trail;
mod triage;

pub use brief::{reads_lines, takes_lines};
pub(crate) use summarize::of_chat as summary_of_chat;

use crate::Jobs;
use std::sync::Arc;
use tierbar_http::routes;
use utoipa_axum::router::OpenApiRouter;

pub fn routes() -> OpenApiRouter<Arc<Jobs>> {
    OpenApiRouter::default()
        .routes(routes!(triage::triage))
        .routes(routes!(compress::compress))
        .routes(routes!(summarize::summarize))
        .routes(routes!(brief::brief))
        .routes(routes!(compact::compact))
}

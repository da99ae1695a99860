//! Jobs with an answer of a fixed form: triage, compress, summarize, brief. Each asks a model through the same relay as any
//! client, so that tiers, leases and errors are the same, and holds it to a schema.

mod ask;
mod batch;
mod brief;
mod compress;
mod stream;
mod summarize;
mod trail;
mod triage;

use crate::jobs::Jobs;
use axum::{Router, routing::post};
use std::sync::Arc;

pub(crate) fn routes() -> Router<Arc<Jobs>> {
    Router::new()
        .route("/v1/triage", post(triage::triage))
        .route("/v1/compress", post(compress::compress))
        .route("/v1/summarize", post(summarize::summarize))
        .route("/v1/brief", post(brief::brief))
}

#[cfg(test)]
mod tests;

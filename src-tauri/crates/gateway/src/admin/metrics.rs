//! `GET /metrics`: what is counted while requests are answered, and what the host reads at this moment.

use crate::admin::Admin;
use axum::{extract::State, http::header, response::IntoResponse};
use std::sync::Arc;
use tierbar_http::{error::Failure, schema::Errors};
use tierbar_inference::metrics::CONTENT_TYPE;

/// Returns counters, histograms and memory: docs/metrics.md.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "operations",
    operation_id = "metrics",
    reach(Inference, Reads),
    responses(
        (status = 200, description = "OpenMetrics text", body = String, content_type = "application/openmetrics-text"),
        Errors,
    ),
)]
pub(crate) async fn metrics(State(admin): State<Arc<Admin>>) -> Result<impl IntoResponse, Failure> {
    let (jobs, bytes) = admin.store.count_jobs().await?;
    let (status, chains) = (admin.services.status(), admin.inference.chain_status());
    let metrics = &admin.inference.metrics;
    let text = metrics.render(&status, &chains, &jobs, bytes)?;
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], text))
}

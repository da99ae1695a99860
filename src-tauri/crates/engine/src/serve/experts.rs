//! `GET /experts`: which experts, or layers of a dense model, are in memory.

use super::{EngineState, Refusal, run_blocking};
use axum::{Json, extract::State};
use std::sync::Arc;
use tierbar_core::paging::Residency;

/// Reports them; `null` if nothing is paged.
pub(super) async fn report_experts(
    State(engine): EngineState,
) -> Result<Json<Option<Residency>>, Refusal> {
    let model = Arc::clone(&engine.model);
    // The system is asked about all pages of the file where it decides what stays.
    let found = run_blocking(move || model.paged().map(|paged| paged.residency())).await?;
    Ok(Json(found))
}

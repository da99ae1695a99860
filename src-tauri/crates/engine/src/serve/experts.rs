//! `GET /experts`: which experts, or layers of a dense model, are in memory.

use super::{EngineState, Refusal, off_the_reactor};
use axum::{Json, extract::State};
use std::sync::Arc;
use tierbar_core::paging::Residency;

/// Reports them; `null` if nothing is paged.
pub(super) async fn experts(
    State(engine): EngineState,
) -> Result<Json<Option<Residency>>, Refusal> {
    let model = Arc::clone(&engine.model);
    // The system is asked about all pages of the file where it decides what stays.
    let found = off_the_reactor(move || model.paged().map(|paged| paged.residency())).await?;
    Ok(Json(found))
}

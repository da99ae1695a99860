//! `POST /trim`: frees caches when memory is low.

use super::{EngineState, Refusal, run_blocking};
use crate::media::MediaReader;
use axum::{Json, extract::State};
use serde_json::{Value, json};
use std::sync::Arc;

/// Frees the checkpoints of idle conversations, the rows of recent images and half of the experts, and returns free memory to
/// the system.
/// Running generations continue.
pub(super) async fn trim(State(engine): EngineState) -> Result<Json<Value>, Refusal> {
    // An embedding model keeps nothing.
    let checkpoints = if engine.pooling.is_some() {
        0
    } else {
        let trimmed = engine.trims.request();
        engine.wake()?;
        trimmed.await.unwrap_or(0)
    };
    let media = engine.media.as_ref().map_or(0, MediaReader::forget);
    let model = Arc::clone(&engine.model);
    let experts = run_blocking(move || {
        let freed = model.paged().map_or(0, |paged| paged.shrink());
        tierbar_telemetry::return_memory();
        freed
    })
    .await?;
    Ok(Json(
        json!({"checkpoint_bytes": checkpoints, "media_bytes": media, "expert_bytes": experts}),
    ))
}

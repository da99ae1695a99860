//! `POST /trim`: frees caches when memory is short.

use super::{Refusal, Shared, off_the_reactor};
use crate::{media::Reader, platform};
use axum::{Json, extract::State};
use serde_json::{Value, json};

/// Frees the checkpoints of idle conversations and the rows of recent images, and returns free memory to the system.
/// Running generations continue.
pub(super) async fn trim(State(engine): Shared) -> Result<Json<Value>, Refusal> {
    // An embedding model keeps nothing.
    let checkpoints = if engine.only_embeds {
        0
    } else {
        let trimmed = engine.trims.request();
        engine.wake()?;
        trimmed.await.unwrap_or(0)
    };
    let media = engine.media.as_ref().map_or(0, Reader::forget);
    off_the_reactor(platform::return_memory).await?;
    Ok(Json(
        json!({"checkpoint_bytes": checkpoints, "media_bytes": media}),
    ))
}

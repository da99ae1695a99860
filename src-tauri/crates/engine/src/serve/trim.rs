//! `/trim`: memory runs short, so what only saves time is given up.

use super::{Refusal, Shared, off_the_reactor};
use crate::{media::Reader, platform};
use axum::{Json, extract::State};
use serde_json::{Value, json};

/// Drops the ways back of conversations that nobody uses and what was made of images, and returns freed memory to the
/// system. What runs goes on.
pub(super) async fn trim(State(engine): Shared) -> Result<Json<Value>, Refusal> {
    // A pooled model keeps nothing.
    let checkpoints = if engine.only_embeds {
        0
    } else {
        let trimmed = engine.trims.ask();
        engine.wake()?;
        trimmed.await.unwrap_or(0)
    };
    let media = engine.media.as_ref().map_or(0, Reader::forget);
    off_the_reactor(platform::return_memory).await?;
    Ok(Json(
        json!({"checkpoint_bytes": checkpoints, "media_bytes": media}),
    ))
}

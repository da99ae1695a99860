//! Loading and unloading a model, which a request without a prompt does.

use super::{
    common::CommonFields,
    writer::{AnswerWriter, Content, Shape},
};
use axum::{
    Json,
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use serde_json::Value;
use std::time::{Duration, Instant};
use tierbar_core::{Error, TierId, TierState, bad_request, lease::KeepAlive};
use tierbar_http::error::Failure;
use tierbar_inference::{Inference, route};

pub(super) async fn load(
    inference: &Inference,
    common: &CommonFields,
    shape: Shape,
    begun: Instant,
) -> Result<Response, Failure> {
    let tier = route::resolve(Some(common.model()), &inference.tiers.snapshot())?;
    let keep = parse_keep_alive(common.keep_alive.as_ref())?;
    let reason = load_or_unload(inference, &tier, keep).await?;
    let writer = AnswerWriter::new(shape, common.model(), begun);
    Ok(Json(writer.ended(Content::default(), reason)).into_response())
}

/// Loads the tier, or lets it go at once where it is to be kept for no time; which of the two it was.
pub(super) async fn load_or_unload(
    inference: &Inference,
    tier: &TierId,
    keep: Option<KeepAlive>,
) -> Result<&'static str, Error> {
    let lets_go = keep.is_some_and(|keep| keep.length() == Some(Duration::ZERO));
    let tiers = inference.tiers.snapshot();
    let is_loaded = tiers.iter().any(|status| {
        status.id == *tier && matches!(status.state, TierState::Ready | TierState::Busy)
    });
    // Only so that nothing is loaded to be unloaded; a tier that goes at this moment comes back for one.
    if !lets_go || is_loaded {
        let lease = inference.tiers.lease(tier).await?;
        if let Some(keep) = keep {
            lease.keep(keep);
        }
    }
    Ok(if lets_go { "unload" } else { "load" })
}

pub(super) fn parse_keep_alive(keep_alive: Option<&Value>) -> Result<Option<KeepAlive>, Error> {
    let given = keep_alive.filter(|value| !value.is_null() && *value != "");
    let read = given.map(KeepAlive::deserialize).transpose();
    read.map_err(|wrong| bad_request(wrong.to_string()))
}

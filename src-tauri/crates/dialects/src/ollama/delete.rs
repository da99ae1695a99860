//! `DELETE /api/delete`: a model's file goes to the Trash.

use super::name::OllamaModelName;
use axum::{body::Body, extract::State, http::StatusCode};
use std::sync::Arc;
use tierbar_core::{Code, TierId, bad_request};
use tierbar_http::error::Failure;
use tierbar_inference::{Inference, body, route};

/// Moves a model's file to the Trash.
#[utoipa::path(
    delete,
    path = "/api/delete",
    operation_id = "ollamaDelete",
    request_body = OllamaModelName,
    reach(Owner, Writes),
    responses((status = 200, description = "The file is in the Trash")),
)]
pub(super) async fn delete(
    State(inference): State<Arc<Inference>>,
    body: Body,
) -> Result<StatusCode, Failure> {
    let named: OllamaModelName = body::object(body).await?;
    let tiers = inference.tiers.snapshot();
    let model = route::without_latest_tag(named.model()?, &tiers);
    // Who means to delete a name must not lose the file that it stands for.
    let is_tier = tiers.iter().any(|tier| tier.id.as_str() == model);
    if is_tier || model == TierId::AUTO {
        let error = bad_request(format!("{model} is a tier, not a model"));
        let hint = "name the model itself; remove a tier in config.toml";
        return Err(error.hint(hint).into());
    }
    let removed = inference.models.remove(model.to_owned(), false).await;
    removed.map_err(|mut error| {
        if error.code == Code::ModelMissing {
            error.code = Code::ModelUnknown;
        }
        error
    })?;
    Ok(StatusCode::OK)
}

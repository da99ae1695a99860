//! Presets: named instructions, sampling and thinking for chats. Those that come with Tierbar cannot be changed.

use crate::admin::AdminState;
use axum::{Json, extract::State, http::StatusCode};
use serde::Serialize;
use serde_json::{Map, Value};
use tierbar_chats::settings::{AnswerSettings, Preset, built_in};
use tierbar_core::bad_request;
use tierbar_http::{Answer, error::Failure, path::Id, request::JsonBody};
use tierbar_inference::body;
use utoipa::ToSchema;

/// All presets.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PresetList {
    /// Those that come with Tierbar, then the owner's by name.
    presets: Vec<Preset>,
}

/// Lists the presets.
#[utoipa::path(
    get,
    path = "/tierbar/v1/presets",
    operation_id = "listPresets",
    reach(Owner, Reads),
    responses((status = 200, description = "The presets", body = PresetList)),
)]
pub(crate) async fn list(State(admin): AdminState) -> Answer<PresetList> {
    let mut presets = built_in();
    presets.extend(admin.store.presets().await?);
    Ok(Json(PresetList { presets }))
}

/// Those of [`AnswerSettings`].
const FIELDS: [&str; 3] = ["instructions", "sampling", "thinking"];

/// Saves a preset, in place of one of the same name.
#[utoipa::path(
    put,
    path = "/tierbar/v1/presets/{name}",
    operation_id = "putPreset",
    reach(Owner, Writes),
    params(("name" = String, Path, description = "The name of a preset")),
    request_body = AnswerSettings,
    responses((status = 200, description = "The preset", body = Preset)),
)]
pub(crate) async fn put(
    State(admin): AdminState,
    Id(name): Id,
    JsonBody(fields): JsonBody<Map<String, Value>>,
) -> Answer<Preset> {
    if let Some(unknown) = fields.keys().find(|key| !FIELDS.contains(&key.as_str())) {
        let error = bad_request(format!("there is no field \"{unknown}\""));
        return Err(error.hint(format!("send {}", FIELDS.join(", "))).into());
    }
    let settings: AnswerSettings = body::of_value(fields.into())?;
    Ok(Json(admin.store.put_preset(&name, settings).await?))
}

/// Deletes a preset. Chats that have its settings keep them.
#[utoipa::path(
    delete,
    path = "/tierbar/v1/presets/{name}",
    operation_id = "deletePreset",
    reach(Owner, Writes),
    params(("name" = String, Path, description = "The name of a preset")),
    responses((status = 204, description = "The preset is deleted")),
)]
pub(crate) async fn remove(State(admin): AdminState, Id(name): Id) -> Result<StatusCode, Failure> {
    admin.store.delete_preset(&name).await?;
    Ok(StatusCode::NO_CONTENT)
}

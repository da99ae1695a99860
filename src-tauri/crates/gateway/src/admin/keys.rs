//! API keys. A key's text is shown once, when it is created.

use crate::admin::AdminState;
use axum::{Json, extract::State, http::StatusCode};
use serde::{Deserialize, Serialize};
use tierbar_core::keys::{ApiKey, KeyLimits};
use tierbar_http::{error::Failure, path::Id, request::JsonBody};
use utoipa::ToSchema;

/// A new key and its limits. Unknown fields are refused.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyRequest {
    name: String,
    requests_per_minute: Option<u32>,
    tokens_per_day: Option<u64>,
    at_once: Option<u32>,
}

/// All API keys, revoked ones included.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KeyList {
    keys: Vec<ApiKey>,
}

/// A new API key.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NewKey {
    #[serde(flatten)]
    added: ApiKey,
    /// Shown this once.
    key: String,
}

/// Lists the API keys.
#[utoipa::path(
    get,
    path = "/tierbar/v1/keys",
    operation_id = "listKeys",
    reach(Owner, Reads),
    responses((status = 200, description = "The keys, without their text", body = KeyList)),
)]
pub(crate) async fn list(State(admin): AdminState) -> Json<KeyList> {
    let keys = admin.edge.keys.list();
    Json(KeyList { keys })
}

/// Creates an API key.
#[utoipa::path(
    post,
    path = "/tierbar/v1/keys",
    operation_id = "addKey",
    reach(Owner, Writes, Opens),
    request_body = KeyRequest,
    responses((status = 201, description = "The key, with its text: it is shown this once", body = NewKey)),
)]
pub(crate) async fn add(
    State(admin): AdminState,
    JsonBody(request): JsonBody<KeyRequest>,
) -> Result<(StatusCode, Json<NewKey>), Failure> {
    let limits = KeyLimits {
        requests_per_minute: request.requests_per_minute,
        tokens_per_day: request.tokens_per_day,
        at_once: request.at_once,
    };
    let (added, key) = admin.edge.keys.add(request.name, limits).await?;
    Ok((StatusCode::CREATED, Json(NewKey { added, key })))
}

/// Revokes an API key.
#[utoipa::path(
    delete,
    path = "/tierbar/v1/keys/{name}",
    operation_id = "revokeKey",
    reach(Owner, Writes),
    params(("name" = String, Path, description = "The name of a key")),
    responses((status = 204, description = "The key is revoked")),
)]
pub(crate) async fn revoke(State(admin): AdminState, Id(name): Id) -> Result<StatusCode, Failure> {
    admin.edge.keys.revoke(&name).await?;
    Ok(StatusCode::NO_CONTENT)
}

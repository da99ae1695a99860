//! API keys: made, listed, revoked. A key is told once.

use crate::{
    admin::Admin,
    http::{body, error::Failure, path::Id},
};
use axum::{Json, body::Body, extract::State, http::StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use tierbar_core::{Code, Error, keys::KeyLimits};

/// A limit that is misspelt would be none.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    name: String,
    requests_per_minute: Option<u32>,
    tokens_per_day: Option<u64>,
    at_once: Option<u32>,
}

pub(crate) async fn list(State(admin): State<Arc<Admin>>) -> Json<Value> {
    Json(json!({"keys": admin.edge.keys.list()}))
}

pub(crate) async fn add(
    State(admin): State<Arc<Admin>>,
    body: Body,
) -> Result<(StatusCode, Json<Value>), Failure> {
    let Wanted {
        name,
        requests_per_minute,
        tokens_per_day,
        at_once,
    } = body::object(body).await?;
    let limits = KeyLimits {
        requests_per_minute,
        tokens_per_day,
        at_once,
    };
    let (rendered, text) = admin.edge.keys.add(name, limits).await?;
    let mut answer = serde_json::to_value(rendered)
        .map_err(|error| Error::new(Code::Internal, error.to_string()))?;
    answer["key"] = text.into();
    Ok((StatusCode::CREATED, Json(answer)))
}

pub(crate) async fn revoke(
    State(admin): State<Arc<Admin>>,
    Id(name): Id,
) -> Result<StatusCode, Failure> {
    admin.edge.keys.revoke(&name).await?;
    Ok(StatusCode::NO_CONTENT)
}

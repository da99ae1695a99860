//! The configuration.

use crate::{Gateway, body, error::Failure};
use axum::{Json, body::Body, extract::State};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tierbar_core::Config;

pub(crate) async fn get(State(gateway): State<Arc<Gateway>>) -> Json<Value> {
    answer(&gateway, &gateway.services.config())
}

pub(crate) async fn patch(
    State(gateway): State<Arc<Gateway>>,
    body: Body,
) -> Result<Json<Value>, Failure> {
    let patch: Map<String, Value> = body::object(body).await?;
    let config = gateway.services.patch_config(Value::Object(patch)).await?;
    Ok(answer(&gateway, &config))
}

fn answer(gateway: &Gateway, config: &Config) -> Json<Value> {
    Json(json!({"path": gateway.services.config_path(), "config": config}))
}

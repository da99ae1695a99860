//! Schedules: what is configured, how far it has come, and running one now.

use crate::{
    Gateway,
    http::{error::Failure, path::Id},
};
use axum::{Json, extract::State};
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) async fn list(State(gateway): State<Arc<Gateway>>) -> Result<Json<Value>, Failure> {
    let schedules = gateway.schedules.list().await?;
    Ok(Json(json!({"schedules": schedules})))
}

pub(crate) async fn run(
    State(gateway): State<Arc<Gateway>>,
    Id(name): Id,
) -> Result<Json<Value>, Failure> {
    let outcome = gateway.schedules.run(name.clone()).await?;
    Ok(Json(json!({"name": name, "outcome": outcome})))
}

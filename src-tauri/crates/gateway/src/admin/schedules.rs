//! Schedules: what is configured, how far it has come, and running one now.

use crate::{
    admin::Admin,
    http::{error::Failure, path::Id},
};
use axum::{Json, extract::State};
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) async fn list(State(admin): State<Arc<Admin>>) -> Result<Json<Value>, Failure> {
    let schedules = admin.schedules.list().await?;
    Ok(Json(json!({"schedules": schedules})))
}

pub(crate) async fn run(
    State(admin): State<Arc<Admin>>,
    Id(name): Id,
) -> Result<Json<Value>, Failure> {
    let outcome = admin.schedules.run(name.clone()).await?;
    Ok(Json(json!({"name": name, "outcome": outcome})))
}

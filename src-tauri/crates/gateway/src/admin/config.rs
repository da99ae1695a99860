//! The configuration, and the models that it can name.

use crate::{Gateway, body, error::Failure};
use axum::{Json, body::Body, extract::State};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tierbar_core::{Code, Config, Error};
use tierbar_library::Entry;

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

pub(crate) async fn models(State(gateway): State<Arc<Gateway>>) -> Result<Json<Value>, Failure> {
    let library = gateway.services.library();
    let folder = library.models_dir().to_owned();
    let listed = tokio::task::spawn_blocking(move || library.list()).await;
    let entries = listed.unwrap_or_else(|ended| {
        Err(Error::new(
            Code::Internal,
            format!("listing models: {ended}"),
        ))
    })?;
    let models: Vec<_> = entries.iter().map(model).collect();
    Ok(Json(json!({"models_dir": folder, "models": models})))
}

fn model(entry: &Entry) -> Value {
    let mut model = json!({"id": entry.id, "path": entry.path, "size_bytes": entry.size_bytes});
    match &entry.account {
        Ok(account) => model["account"] = json!(account),
        Err(error) => model["error"] = json!(error.message),
    }
    model
}

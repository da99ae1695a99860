//! Models on their way.

use crate::{
    DownloadChange, Gateway, Pull,
    http::{body, error::Failure, path::Id},
};
use axum::{Json, body::Body, extract::State, http::StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;
use tierbar_core::download::DownloadStatus;

pub(crate) async fn list(State(gateway): State<Arc<Gateway>>) -> Json<Value> {
    Json(json!({"downloads": gateway.models.downloads()}))
}

pub(crate) async fn add(
    State(gateway): State<Arc<Gateway>>,
    body: Body,
) -> Result<(StatusCode, Json<DownloadStatus>), Failure> {
    let pull: Pull = body::object(body).await?;
    let (download, new) = gateway.models.download(pull).await?;
    let status = if new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok((status, Json(download)))
}

pub(crate) async fn change(
    State(gateway): State<Arc<Gateway>>,
    Id(id): Id,
    body: Body,
) -> Result<Json<DownloadStatus>, Failure> {
    let change: DownloadChange = body::object(body).await?;
    Ok(Json(gateway.models.change_download(id, change).await?))
}

pub(crate) async fn remove(
    State(gateway): State<Arc<Gateway>>,
    Id(id): Id,
) -> Result<StatusCode, Failure> {
    gateway.models.remove_download(id).await?;
    Ok(StatusCode::NO_CONTENT)
}

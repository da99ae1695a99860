//! Models on their way.

use crate::{
    admin::Admin,
    http::{body, error::Failure, path::Id},
    services::models::{DownloadChange, Pull},
};
use axum::{Json, body::Body, extract::State, http::StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;
use tierbar_core::download::DownloadStatus;

pub(crate) async fn list(State(admin): State<Arc<Admin>>) -> Json<Value> {
    Json(json!({"downloads": admin.models.downloads()}))
}

pub(crate) async fn add(
    State(admin): State<Arc<Admin>>,
    body: Body,
) -> Result<(StatusCode, Json<DownloadStatus>), Failure> {
    let pull: Pull = body::object(body).await?;
    let (download, new) = admin.models.download(pull).await?;
    let status = if new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok((status, Json(download)))
}

pub(crate) async fn change(
    State(admin): State<Arc<Admin>>,
    Id(id): Id,
    body: Body,
) -> Result<Json<DownloadStatus>, Failure> {
    let change: DownloadChange = body::object(body).await?;
    Ok(Json(admin.models.change_download(id, change).await?))
}

pub(crate) async fn remove(
    State(admin): State<Arc<Admin>>,
    Id(id): Id,
) -> Result<StatusCode, Failure> {
    admin.models.remove_download(id).await?;
    Ok(StatusCode::NO_CONTENT)
}

//! Models on their way.

use crate::admin::AdminState;
use axum::{Json, extract::State, http::StatusCode};
use serde::Serialize;
use tierbar_core::download::DownloadStatus;
use tierbar_fetch::detached;
use tierbar_http::{Answer, error::Failure, path::Id, request::JsonBody};
use tierbar_inference::services::models::{DownloadChange, DownloadRequest};
use utoipa::ToSchema;

/// All downloads.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Downloads {
    downloads: Vec<DownloadStatus>,
}

/// Lists the downloads.
#[utoipa::path(
    get,
    path = "/tierbar/v1/downloads",
    operation_id = "listDownloads",
    reach(Owner, Reads),
    responses((status = 200, description = "The downloads", body = Downloads)),
)]
pub(crate) async fn list(State(admin): AdminState) -> Json<Downloads> {
    let downloads = admin.models.downloads();
    Json(Downloads { downloads })
}

/// Starts or resumes a download.
#[utoipa::path(
    post,
    path = "/tierbar/v1/downloads",
    operation_id = "addDownload",
    reach(Owner, Writes, Spends),
    request_body = DownloadRequest,
    responses((status = 200, description = "The download was known", body = DownloadStatus), (status = 201, description = "The download is new", body = DownloadStatus)),
)]
pub(crate) async fn add(
    State(admin): AdminState,
    JsonBody(pull): JsonBody<DownloadRequest>,
) -> Result<(StatusCode, Json<DownloadStatus>), Failure> {
    // A task of its own: the hub is asked first, and a window that closes meanwhile still gets its download.
    let starting = async move { admin.models.download(pull).await };
    let (download, new) = detached("the start of the download", starting).await?;
    let status = if new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok((status, Json(download)))
}

/// Pauses, resumes or prioritizes a download.
#[utoipa::path(
    patch,
    path = "/tierbar/v1/downloads/{id}",
    operation_id = "changeDownload",
    reach(Owner, Writes, Spends),
    params(("id" = String, Path, description = "The id of a download")),
    request_body = DownloadChange,
    responses((status = 200, description = "The download", body = DownloadStatus)),
)]
pub(crate) async fn change(
    State(admin): AdminState,
    Id(id): Id,
    JsonBody(change): JsonBody<DownloadChange>,
) -> Answer<DownloadStatus> {
    Ok(Json(admin.models.change_download(id, change).await?))
}

/// Cancels a download, and deletes what has arrived.
#[utoipa::path(
    delete,
    path = "/tierbar/v1/downloads/{id}",
    operation_id = "removeDownload",
    reach(Owner, Writes),
    params(("id" = String, Path, description = "The id of a download")),
    responses((status = 204, description = "The download is removed")),
)]
pub(crate) async fn remove(State(admin): AdminState, Id(id): Id) -> Result<StatusCode, Failure> {
    admin.models.remove_download(id).await?;
    Ok(StatusCode::NO_CONTENT)
}

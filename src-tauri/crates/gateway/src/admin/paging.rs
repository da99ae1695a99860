//! What is in memory of the models that are larger than it.

use crate::admin::Admin;
use axum::{Json, extract::State};
use std::sync::Arc;
use tierbar_core::paging::PagingStatus;
use tierbar_http::{error::Failure, schema::Errors};

/// Returns which experts of the loaded models are in memory, and what the disks read and write.
#[utoipa::path(
    get,
    path = "/tierbar/v1/paging",
    tag = "owner",
    operation_id = "paging",
    reach(Owner, Reads),
    responses((status = 200, description = "The experts and the disks", body = PagingStatus), Errors),
)]
pub(crate) async fn paging(State(admin): State<Arc<Admin>>) -> Result<Json<PagingStatus>, Failure> {
    Ok(Json(admin.services.paging().await))
}

//! Pauses and resumes all tiers.

use crate::admin::Admin;
use axum::{Json, body::Body, extract::State};
use serde::Deserialize;
use std::sync::Arc;
use tierbar_core::{config::Span, status::Status};
use tierbar_http::{error::Failure, schema::Errors};
use tierbar_inference::body;

#[derive(Debug, Deserialize, utoipa::ToSchema)]
pub(crate) struct Pause {
    /// How long; until resumed if omitted.
    #[serde(default, rename = "for")]
    #[schema(value_type = Option<String>, examples("1h"))]
    length: Option<Span>,
}

/// Unloads the models, and loads none until the pause ends.
#[utoipa::path(
    post,
    path = "/tierbar/v1/pause",
    tag = "owner",
    operation_id = "pause",
    reach(Owner, Writes),
    request_body = Pause,
    responses((status = 200, description = "The status", body = Status), Errors),
)]
pub(crate) async fn pause(
    State(admin): State<Arc<Admin>>,
    body: Body,
) -> Result<Json<Status>, Failure> {
    let pause: Pause = body::object(body).await?;
    let status = admin
        .services
        .pause(pause.length.map(|Span(length)| length));
    Ok(Json(Status::clone(&status)))
}

/// Ends a pause.
#[utoipa::path(
    post,
    path = "/tierbar/v1/resume",
    tag = "owner",
    operation_id = "resume",
    reach(Owner, Writes),
    responses((status = 200, description = "The status", body = Status), Errors),
)]
pub(crate) async fn resume(State(admin): State<Arc<Admin>>) -> Json<Status> {
    Json(Status::clone(&admin.services.resume()))
}

//! All tiers at rest, until somebody wants them again.

use crate::{
    admin::Admin,
    http::{body, error::Failure},
};
use axum::{Json, body::Body, extract::State};
use serde::Deserialize;
use std::sync::Arc;
use tierbar_core::{config::Span, status::Status};

#[derive(Debug, Deserialize)]
pub(crate) struct Pause {
    /// Until somebody resumes, if there is none.
    #[serde(default, rename = "for")]
    length: Option<Span>,
}

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

pub(crate) async fn resume(State(admin): State<Arc<Admin>>) -> Json<Status> {
    Json(Status::clone(&admin.services.resume()))
}

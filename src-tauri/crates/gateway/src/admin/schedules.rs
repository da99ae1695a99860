//! Schedules: what is configured, how far it has come, and running one now.

use crate::admin::AdminState;
use axum::{Json, extract::State};
use serde::Serialize;
use tierbar_core::schedule::ScheduleStatus;
use tierbar_http::{Answer, path::Id};
use utoipa::ToSchema;

/// All schedules.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ScheduleList {
    schedules: Vec<ScheduleStatus>,
}

/// A run that has ended.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ScheduleRun {
    name: String,
    /// One sentence.
    outcome: String,
}

/// Lists the schedules.
#[utoipa::path(
    get,
    path = "/tierbar/v1/schedules",
    operation_id = "listSchedules",
    reach(Owner, Reads),
    responses((status = 200, description = "The schedules", body = ScheduleList)),
)]
pub(crate) async fn list(State(admin): AdminState) -> Answer<ScheduleList> {
    let schedules = admin.schedules.list().await?;
    Ok(Json(ScheduleList { schedules }))
}

/// Runs a schedule now.
#[utoipa::path(
    post,
    path = "/tierbar/v1/schedules/{name}/run",
    operation_id = "runSchedule",
    reach(Owner, Reads, Writes, Spends),
    params(("name" = String, Path, description = "The name of a schedule")),
    responses((status = 200, description = "The outcome of the run", body = ScheduleRun)),
)]
pub(crate) async fn run(State(admin): AdminState, Id(name): Id) -> Answer<ScheduleRun> {
    let outcome = admin.schedules.run(name.clone()).await?;
    Ok(Json(ScheduleRun { name, outcome }))
}

//! What a set-up proposes for this machine, where its models may go, and how the tiers answer at its end.

use super::tiers::find_tier;
use crate::admin::AdminState;
use axum::{Json, extract::State, http::StatusCode};
use serde::{Deserialize, Serialize};
use tierbar_core::{
    bad_request,
    setup::{FolderRoom, SetupPlan, TierAnswer},
};
use tierbar_http::{
    Answer,
    error::Failure,
    request::{JsonBody, QueryFields},
};
use utoipa::ToSchema;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct SetupQuery {
    /// RAM of a Mac to plan for, such as `16GiB`; without it, this machine.
    ram: Option<String>,
}

/// Proposes a model for each tier of this machine. Download each with its `reference` and `tier`.
#[utoipa::path(
    get,
    path = "/tierbar/v1/setup",
    operation_id = "planSetup",
    reach(Owner, Reads),
    params(SetupQuery),
    responses((status = 200, description = "The plan", body = SetupPlan)),
)]
pub(crate) async fn plan(
    State(admin): AdminState,
    QueryFields(SetupQuery { ram }): QueryFields<SetupQuery>,
) -> Answer<SetupPlan> {
    let mut plan = admin.models.plan_setup(ram.clone()).await?;
    if ram.is_none() {
        let status = admin.services.status();
        let own = status.tiers.iter().filter_map(|tier| tier.footprint_bytes);
        let ram = &status.ram;
        let used = ram.total_bytes.saturating_sub(ram.available_bytes);
        plan.count_others(used.saturating_sub(own.sum()));
    }
    Ok(Json(plan))
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Folder {
    /// As a full path or from `~`, such as `/Volumes/Models`.
    path: String,
}

/// Checks a folder that models could be downloaded to, and returns the room on its disk.
#[utoipa::path(
    get,
    path = "/tierbar/v1/setup/folder",
    operation_id = "checkFolder",
    reach(Owner, Reads),
    params(Folder),
    responses((status = 200, description = "The folder", body = FolderRoom)),
)]
pub(crate) async fn folder(
    State(admin): AdminState,
    QueryFields(Folder { path }): QueryFields<Folder>,
) -> Answer<FolderRoom> {
    Ok(Json(admin.models.folder_room(path).await?))
}

/// The tiers to ask.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct SetupQuestion {
    tiers: Vec<String>,
}

/// How the tiers answer, in the order in which they are asked.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SetupAnswers)]
pub(crate) struct Answers {
    answers: Vec<TierAnswer>,
}

/// Returns how the tiers have answered since the host started.
#[utoipa::path(
    get,
    path = "/tierbar/v1/setup/answers",
    operation_id = "listAnswers",
    reach(Owner, Reads),
    responses((status = 200, description = "The answers", body = Answers)),
)]
pub(crate) async fn answers(State(admin): AdminState) -> Json<Answers> {
    let answers = admin.jobs.answers.list();
    Json(Answers { answers })
}

/// Loads each of these tiers in turn, and asks it one short question. The host goes on if the client leaves.
#[utoipa::path(
    post,
    path = "/tierbar/v1/setup/answers",
    operation_id = "askTiers",
    reach(Owner, Spends),
    request_body = SetupQuestion,
    responses((status = 202, description = "The answers so far", body = Answers)),
)]
pub(crate) async fn ask(
    State(admin): AdminState,
    JsonBody(SetupQuestion { tiers: names }): JsonBody<SetupQuestion>,
) -> Result<(StatusCode, Json<Answers>), Failure> {
    if names.is_empty() {
        let error = bad_request("no tier is named");
        return Err(error.hint("name the tiers to ask in `tiers`").into());
    }
    let mut tiers = Vec::new();
    for name in &names {
        tiers.push(find_tier(&admin, name)?);
    }
    let answers = admin.jobs.ask_tiers(tiers);
    Ok((StatusCode::ACCEPTED, Json(Answers { answers })))
}

/// Stops asking, and clears the answers.
#[utoipa::path(
    delete,
    path = "/tierbar/v1/setup/answers",
    operation_id = "clearAnswers",
    reach(Owner, Writes),
    responses((status = 204, description = "There are no answers")),
)]
pub(crate) async fn stop_asking(State(admin): AdminState) -> StatusCode {
    admin.jobs.answers.clear();
    StatusCode::NO_CONTENT
}

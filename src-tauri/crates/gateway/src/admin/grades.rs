//! Grades of answers: given and undone, their rates, what `auto` has learned from them, and their export.

use crate::admin::{Admin, AdminState};
use axum::{
    Json,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use std::collections::HashMap;
use tierbar_chats::training::{self, ExportForm};
use tierbar_core::{Code, Error};
use tierbar_fetch::blocking;
use tierbar_http::{
    Answer,
    error::Failure,
    path::Id,
    request::{JsonBody, QueryFields},
};
use tierbar_routing::{
    grade::{Grade, GradeGroup, GradeReport},
    learned::LearnedLevels,
};
use utoipa::IntoParams;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Export {
    #[serde(default)]
    #[param(inline)]
    form: ExportForm,
}

/// Grades an answer, in place of an earlier grade.
#[utoipa::path(
    put,
    path = "/tierbar/v1/chats/{id}/messages/{message}/grade",
    operation_id = "gradeAnswer",
    reach(Owner, Writes),
    params(("id" = String, Path, description = "The id of a chat"), ("message" = u64, Path, description = "The id of an answer")),
    request_body = Grade,
    responses((status = 200, description = "The grade", body = Grade)),
)]
pub(crate) async fn give(
    State(admin): AdminState,
    Id((chat, message)): Id<(String, String)>,
    JsonBody(grade): JsonBody<Grade>,
) -> Answer<Grade> {
    let message = number(&message)?;
    let _weight = admin.jobs.charge_chat(&chat, 0).await?;
    let models = admin.models.list().await.map(|listed| listed.models);
    let models = models.unwrap_or_default().into_iter();
    let quants: HashMap<String, String> = models
        .filter_map(|model| Some((model.id.to_string(), model.account?.quant)))
        .collect();
    let quant_of = move |model: &str| quants.get(model).cloned();
    let grade = admin.store.grade(&chat, message, grade, quant_of).await?;
    learn(&admin).await?;
    Ok(Json(grade))
}

/// Removes the grade of an answer.
#[utoipa::path(
    delete,
    path = "/tierbar/v1/chats/{id}/messages/{message}/grade",
    operation_id = "removeGrade",
    reach(Owner, Writes),
    params(("id" = String, Path, description = "The id of a chat"), ("message" = u64, Path, description = "The id of an answer")),
    responses((status = 204, description = "The answer has no grade")),
)]
pub(crate) async fn remove(
    State(admin): AdminState,
    Id((chat, message)): Id<(String, String)>,
) -> Result<StatusCode, Failure> {
    let message = number(&message)?;
    admin.store.remove_grade(&chat, message).await?;
    learn(&admin).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the rates of graded answers, and what `auto` has learned from them.
#[utoipa::path(
    get,
    path = "/tierbar/v1/grades",
    operation_id = "grades",
    reach(Owner, Reads),
    responses((status = 200, description = "The rates", body = GradeReport)),
)]
pub(crate) async fn report(State(admin): AdminState) -> Answer<GradeReport> {
    let groups = learn(&admin).await?;
    Ok(Json(GradeReport::from_groups(groups)))
}

/// Returns the graded answers as JSON Lines, for preference tuning.
#[utoipa::path(
    get,
    path = "/tierbar/v1/grades/export",
    operation_id = "exportGrades",
    reach(Owner, Reads),
    params(Export),
    responses((status = 200, description = "One JSON object per line: `prompt`, `chosen` and `rejected`, or `prompt`, `completion` and `label`", content((String = "application/jsonl")))),
)]
pub(crate) async fn export(
    State(admin): AdminState,
    QueryFields(Export { form }): QueryFields<Export>,
) -> Result<Response, Failure> {
    let answers = admin.store.graded_answers().await?;
    let lines = blocking("the export", move || {
        let lines = training::export(&answers, form).into_iter();
        Ok(lines.map(|line| format!("{line}\n")).collect::<String>())
    })
    .await?;
    let headers = [
        (header::CONTENT_TYPE, "application/jsonl"),
        (
            header::CONTENT_DISPOSITION,
            "attachment; filename=\"grades.jsonl\"",
        ),
    ];
    Ok((headers, lines).into_response())
}

/// Has `auto` learn from none of the grades so far. They are kept.
#[utoipa::path(
    post,
    path = "/tierbar/v1/grades/reset",
    operation_id = "resetLearnedRouting",
    reach(Owner, Writes),
    responses((status = 204, description = "The router goes by its rules alone")),
)]
pub(crate) async fn reset(State(admin): AdminState) -> Result<StatusCode, Failure> {
    admin.store.reset_learned().await?;
    learn(&admin).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Has the router learn from the grades as they are now.
async fn learn(admin: &Admin) -> Result<Vec<GradeGroup>, Error> {
    let groups = admin.store.grade_groups().await?;
    admin
        .inference
        .auto
        .learn(LearnedLevels::from_groups(&groups));
    Ok(groups)
}

fn number(id: &str) -> Result<u64, Error> {
    id.parse().map_err(|_| {
        let message = format!("there is no message \"{id:.64}\" in this chat");
        Error::new(Code::NotFound, message)
    })
}

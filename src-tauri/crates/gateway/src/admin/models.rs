//! Models that are here: what fits, what is whole, what goes.

use crate::{
    admin::Admin,
    http::{body, error::Failure, path::Id},
    services::models::{FitQuestion, Listed, Verified},
};
use axum::{
    Json,
    body::Body,
    extract::{Query, State, rejection::QueryRejection},
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use tierbar_core::{Code, Error, fit::Verdict};

#[derive(Debug, Deserialize)]
pub(crate) struct Removal {
    #[serde(default)]
    permanently: bool,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Import {
    path: String,
}

pub(crate) async fn list(State(admin): State<Arc<Admin>>) -> Result<Json<Listed>, Failure> {
    Ok(Json(admin.models.list().await?))
}

pub(crate) async fn fit(
    State(admin): State<Arc<Admin>>,
    question: Result<Query<FitQuestion>, QueryRejection>,
) -> Result<Json<Verdict>, Failure> {
    Ok(Json(admin.models.fit(read_query(question)?).await?))
}

pub(crate) async fn remove(
    State(admin): State<Arc<Admin>>,
    Id(id): Id,
    removal: Result<Query<Removal>, QueryRejection>,
) -> Result<Json<Value>, Failure> {
    let permanently = read_query(removal)?.permanently;
    let removed = admin.models.remove(id, permanently).await;
    let trashed = removed.map_err(unknown)?;
    Ok(Json(json!({"trashed": trashed})))
}

pub(crate) async fn verify(
    State(admin): State<Arc<Admin>>,
    Id(id): Id,
) -> Result<Json<Verified>, Failure> {
    Ok(Json(admin.models.verify(id).await.map_err(unknown)?))
}

pub(crate) async fn import(
    State(admin): State<Arc<Admin>>,
    body: Body,
) -> Result<Json<Value>, Failure> {
    let Import { path } = body::object(body).await?;
    Ok(Json(json!({"models": admin.models.import(path).await?})))
}

/// A model that an address names and that is not here.
fn unknown(mut error: Error) -> Error {
    if error.code == Code::ModelMissing {
        error.code = Code::ModelUnknown;
    }
    error
}

/// What stands behind the `?`.
pub(super) fn read_query<T>(query: Result<Query<T>, QueryRejection>) -> Result<T, Error> {
    query.map(|Query(query)| query).map_err(|rejection| {
        Error::new(
            Code::BadRequest,
            format!("the query is not valid: {}", rejection.body_text()),
        )
    })
}

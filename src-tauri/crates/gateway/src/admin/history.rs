//! What the machine's readings were.

use super::models::read_query;
use crate::admin::Admin;
use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
};
use serde::Deserialize;
use std::sync::Arc;
use tierbar_core::{Code, Error, history::History};
use tierbar_http::{error::Failure, schema::Errors};

/// As much as is kept: 30 days.
const MOST_MINUTES: u64 = 30 * 24 * 60;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Question {
    #[serde(default = "default_minutes")]
    minutes: u64,
    /// Leaves out points that start before it, in seconds since 1970: those that are known already.
    #[serde(default)]
    since: u64,
}

fn default_minutes() -> u64 {
    10
}

/// Returns past readings of the machine.
#[utoipa::path(
    get,
    path = "/tierbar/v1/history",
    tag = "owner",
    operation_id = "history",
    reach(Owner, Reads),
    params(Question),
    responses((status = 200, description = "The readings", body = History), Errors),
)]
pub(crate) async fn history(
    State(admin): State<Arc<Admin>>,
    question: Result<Query<Question>, QueryRejection>,
) -> Result<Json<History>, Failure> {
    let Question { minutes, since } = read_query(question)?;
    if !(1..=MOST_MINUTES).contains(&minutes) {
        let message = format!("minutes is {minutes}; it must be between 1 and {MOST_MINUTES}");
        return Err(Error::new(Code::BadRequest, message).into());
    }
    let mut history = admin.services.history(minutes).await?;
    history.points.retain(|point| point.at >= since);
    Ok(Json(history))
}

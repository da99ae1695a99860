//! What tasks took here, and saved elsewhere; and when a machine has paid for itself.

use super::models::read_query;
use crate::admin::Admin;
use axum::{
    Json,
    body::Body,
    extract::{Query, State, rejection::QueryRejection},
};
use serde::Deserialize;
use std::sync::Arc;
use tierbar_core::{Code, Error};
use tierbar_http::{error::Failure, schema::Errors};
use tierbar_inference::body;
use tierbar_measure::break_even::{BreakEven, BreakEvenInputs};
use tierbar_tasks::saved::Costs;

/// As many are kept.
const MOST_DAYS: u32 = 366;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Question {
    #[serde(default = "default_days")]
    days: u32,
}

fn default_days() -> u32 {
    30
}

/// Returns what tasks computed here, and what that would have cost elsewhere.
#[utoipa::path(
    get,
    path = "/tierbar/v1/costs",
    tag = "owner",
    operation_id = "costs",
    reach(Owner, Reads),
    params(Question),
    responses((status = 200, description = "The costs", body = Costs), Errors),
)]
pub(crate) async fn costs(
    State(admin): State<Arc<Admin>>,
    question: Result<Query<Question>, QueryRejection>,
) -> Result<Json<Costs>, Failure> {
    let days = read_query(question)?.days;
    if !(1..=MOST_DAYS).contains(&days) {
        let message = format!("days is {days}; it must be between 1 and {MOST_DAYS}");
        return Err(Error::new(Code::BadRequest, message).into());
    }
    Ok(Json(admin.store.costs(days).await?))
}

/// Returns after how many months a machine has paid for itself, by these figures alone.
#[utoipa::path(
    post,
    path = "/tierbar/v1/costs/break-even",
    tag = "owner",
    operation_id = "breakEven",
    reach(Owner, Reads),
    request_body = BreakEvenInputs,
    responses((status = 200, description = "The sum", body = BreakEven), Errors),
)]
pub(crate) async fn break_even(body: Body) -> Result<Json<BreakEven>, Failure> {
    let inputs: BreakEvenInputs = body::object(body).await?;
    let sum = inputs.sum();
    Ok(Json(sum.map_err(|why| Error::new(Code::BadRequest, why))?))
}

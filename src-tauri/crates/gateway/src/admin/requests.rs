//! The last requests.

use super::models::read_query;
use crate::admin::Admin;
use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tierbar_core::{
    Code, Error,
    requests::{RecentRequests, RequestRecord},
};
use tierbar_http::{error::Failure, schema::Errors};
use utoipa::ToSchema;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Question {
    #[serde(default = "default_limit")]
    #[param(minimum = 1, maximum = 500)]
    limit: usize,
    /// Leaves out requests up to this id: those that are known already.
    #[serde(default)]
    after: u64,
}

fn default_limit() -> usize {
    100
}

/// The last requests of this host.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Requests {
    /// Those that have ended, the newest first.
    requests: Vec<RequestRecord>,
}

/// Lists the last requests, with their times and tokens and without their texts.
#[utoipa::path(
    get,
    path = "/tierbar/v1/requests",
    tag = "owner",
    operation_id = "requests",
    reach(Owner, Reads),
    params(Question),
    responses((status = 200, description = "The requests", body = Requests), Errors),
)]
pub(crate) async fn requests(
    State(admin): State<Arc<Admin>>,
    question: Result<Query<Question>, QueryRejection>,
) -> Result<Json<Requests>, Failure> {
    let most = RecentRequests::KEPT;
    let Question { limit, after } = read_query(question)?;
    if !(1..=most).contains(&limit) {
        let message = format!("limit is {limit}; it must be between 1 and {most}");
        return Err(Error::new(Code::BadRequest, message).into());
    }
    let mut requests = admin.inference.metrics.recent_requests(limit);
    requests.retain(|request| request.id > after);
    Ok(Json(Requests { requests }))
}

//! Requests that wait, all of them, and what their webhooks are signed with.

use super::models::read_query;
use crate::admin::Admin;
use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
};
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{collections::BTreeMap, sync::Arc};
use tierbar_core::{Code, Error, queue::JobState};
use tierbar_http::{
    error::Failure,
    schema::{Errors, QueuedRequest},
};
use tierbar_jobs::queue;
use utoipa::ToSchema;

const LONGEST_PAGE: u32 = 1000;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Question {
    state: Option<JobState>,
    #[serde(default = "default_limit")]
    #[param(minimum = 1, maximum = 1000)]
    limit: u32,
}

fn default_limit() -> u32 {
    100
}

/// The queue, and a page of its requests.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QueuePage {
    /// How many requests are in each state.
    counts: BTreeMap<JobState, u64>,
    /// What all of them take on the disk.
    bytes: u64,
    #[schema(value_type = Vec<QueuedRequest>)]
    jobs: Vec<Value>,
}

/// What webhooks are signed with.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WebhookSecret {
    secret: String,
}

/// Lists queued requests.
#[utoipa::path(
    get,
    path = "/tierbar/v1/queue",
    tag = "owner",
    operation_id = "listQueue",
    reach(Owner, Reads),
    params(Question),
    responses((status = 200, description = "The requests", body = QueuePage), Errors),
)]
pub(crate) async fn list(
    State(admin): State<Arc<Admin>>,
    question: Result<Query<Question>, QueryRejection>,
) -> Result<Json<QueuePage>, Failure> {
    let Question { state, limit } = read_query(question)?;
    if !(1..=LONGEST_PAGE).contains(&limit) {
        let message = format!("limit is {limit}; it must be between 1 and {LONGEST_PAGE}");
        return Err(Error::new(Code::BadRequest, message).into());
    }
    let (counted, bytes) = admin.store.count_jobs().await?;
    let jobs = admin.store.list_jobs(state, limit).await?;
    Ok(Json(QueuePage {
        counts: counted.into_iter().collect(),
        bytes,
        jobs: jobs.iter().map(queue::status_json).collect(),
    }))
}

/// Returns the secret that webhooks are signed with.
#[utoipa::path(
    get,
    path = "/tierbar/v1/queue/secret",
    tag = "owner",
    operation_id = "queueSecret",
    reach(Owner, Reads, Opens),
    responses((status = 200, description = "The secret", body = WebhookSecret), Errors),
)]
pub(crate) async fn secret(
    State(admin): State<Arc<Admin>>,
) -> Result<Json<WebhookSecret>, Failure> {
    let secret = queue::secret(&admin.jobs).await?;
    let secret = secret.expose_secret().to_owned();
    Ok(Json(WebhookSecret { secret }))
}

//! Requests that wait, all of them, and what their webhooks are signed with.

use crate::admin::AdminState;
use axum::{Json, extract::State};
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use tierbar_core::queue::JobState;
use tierbar_http::{
    Answer,
    request::{QueryFields, check_range},
    schema::QueuedRequest,
};
use tierbar_jobs::queue;
use utoipa::ToSchema;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct QueueQuery {
    state: Option<JobState>,
    #[serde(default = "super::default_limit")]
    #[param(minimum = 1, maximum = 1000)]
    limit: u32,
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
    operation_id = "listQueue",
    reach(Owner, Reads),
    params(QueueQuery),
    responses((status = 200, description = "The requests", body = QueuePage)),
)]
pub(crate) async fn list(
    State(admin): AdminState,
    QueryFields(QueueQuery { state, limit }): QueryFields<QueueQuery>,
) -> Answer<QueuePage> {
    check_range("limit", limit, 1..=super::LONGEST_PAGE)?;
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
    operation_id = "queueSecret",
    reach(Owner, Reads, Opens),
    responses((status = 200, description = "The secret", body = WebhookSecret)),
)]
pub(crate) async fn secret(State(admin): AdminState) -> Answer<WebhookSecret> {
    let secret = queue::secret(&admin.jobs).await?;
    let secret = secret.expose_secret().to_owned();
    Ok(Json(WebhookSecret { secret }))
}

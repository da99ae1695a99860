//! Requests that wait, all of them, and what their webhooks are signed with.

use super::models::read_query;
use crate::{admin::Admin, http::error::Failure, jobs::queue};
use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
};
use secrecy::ExposeSecret;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tierbar_core::{Code, Error, queue::JobState};

const LONGEST_PAGE: u32 = 1000;

#[derive(Debug, Deserialize)]
pub(crate) struct Question {
    state: Option<JobState>,
    #[serde(default = "hundred")]
    limit: u32,
}

fn hundred() -> u32 {
    100
}

pub(crate) async fn list(
    State(admin): State<Arc<Admin>>,
    question: Result<Query<Question>, QueryRejection>,
) -> Result<Json<Value>, Failure> {
    let Question { state, limit } = read_query(question)?;
    if !(1..=LONGEST_PAGE).contains(&limit) {
        let message = format!("limit is {limit}; it must be between 1 and {LONGEST_PAGE}");
        return Err(Error::new(Code::BadRequest, message).into());
    }
    let (counted, bytes) = admin.store.count_jobs().await?;
    let mut counts = Map::new();
    for (state, count) in counted {
        if let Ok(Value::String(state)) = serde_json::to_value(state) {
            counts.insert(state, count.into());
        }
    }
    let jobs = admin.store.list_jobs(state, limit).await?;
    let jobs: Vec<_> = jobs.iter().map(queue::status_json).collect();
    Ok(Json(
        json!({"counts": counts, "bytes": bytes, "jobs": jobs}),
    ))
}

pub(crate) async fn secret(State(admin): State<Arc<Admin>>) -> Result<Json<Value>, Failure> {
    let secret = queue::secret(&admin.jobs).await?;
    Ok(Json(json!({"secret": secret.expose_secret()})))
}

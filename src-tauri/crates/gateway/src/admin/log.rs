//! What happened to the tiers, and why.

use super::models::read_query;
use crate::admin::Admin;
use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tierbar_core::{
    Code, Error, TierId,
    journal::{Entry, Filter, Kind},
};
use tierbar_http::{error::Failure, schema::Errors};
use utoipa::ToSchema;

const LONGEST_PAGE: u32 = 1000;
const MOST_WORDS: usize = 16;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Question {
    /// The id that the page before ended with.
    before: Option<u64>,
    #[serde(default = "default_limit")]
    #[param(minimum = 1, maximum = 1000)]
    limit: u32,
    tier: Option<String>,
    kind: Option<Kind>,
    /// Words that the sentence has, in any case and order.
    #[serde(default)]
    words: String,
}

fn default_limit() -> u32 {
    100
}

/// A page of the event log.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventLog {
    /// The newest first.
    entries: Vec<Entry>,
}

/// Lists what happened to the tiers, the newest first.
#[utoipa::path(
    get,
    path = "/tierbar/v1/log",
    tag = "owner",
    operation_id = "log",
    reach(Owner, Reads),
    params(Question),
    responses((status = 200, description = "The events", body = EventLog), Errors),
)]
pub(crate) async fn log(
    State(admin): State<Arc<Admin>>,
    question: Result<Query<Question>, QueryRejection>,
) -> Result<Json<EventLog>, Failure> {
    let Question {
        before,
        limit,
        tier,
        kind,
        words,
    } = read_query(question)?;
    let count = words.split_whitespace().count();
    if count > MOST_WORDS {
        let message = format!("words has {count} words; at most {MOST_WORDS} are looked for");
        return Err(Error::new(Code::BadRequest, message).into());
    }
    if !(1..=LONGEST_PAGE).contains(&limit) {
        let message = format!("limit is {limit}; it must be between 1 and {LONGEST_PAGE}");
        return Err(Error::new(Code::BadRequest, message).into());
    }
    // One that is configured no more may have a past.
    let tier = tier
        .map(TierId::new)
        .transpose()
        .map_err(|wrong| Error::new(Code::BadRequest, wrong))?;
    let filter = Filter::new(tier, kind, &words);
    let entries = admin.store.entries(before, filter, limit).await?;
    Ok(Json(EventLog { entries }))
}

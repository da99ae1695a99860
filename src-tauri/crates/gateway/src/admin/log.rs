//! What happened to the tiers, and why; and the last requests.

use crate::admin::AdminState;
use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use tierbar_core::{
    TierId, bad_request,
    journal::{Entry, Filter, Kind},
    requests::{RecentRequests, RequestRecord},
};
use tierbar_http::{
    Answer,
    request::{QueryFields, check_range},
};
use utoipa::ToSchema;

const MOST_WORDS: usize = 16;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct LogQuery {
    /// The id that the page before ended with.
    before: Option<u64>,
    #[serde(default = "super::default_limit")]
    #[param(minimum = 1, maximum = 1000)]
    limit: u32,
    tier: Option<String>,
    kind: Option<Kind>,
    /// Words that the sentence has, in any case and order.
    #[serde(default)]
    words: String,
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
    reach(Owner, Reads),
    params(LogQuery),
    responses((status = 200, description = "The events", body = EventLog)),
)]
pub(crate) async fn log(
    State(admin): AdminState,
    QueryFields(query): QueryFields<LogQuery>,
) -> Answer<EventLog> {
    let count = query.words.split_whitespace().count();
    if count > MOST_WORDS {
        let message = format!("words has {count} words; at most {MOST_WORDS} are looked for");
        return Err(bad_request(message).into());
    }
    let limit = check_range("limit", query.limit, 1..=super::LONGEST_PAGE)?;
    // One that is configured no more may have a past.
    let tier = query
        .tier
        .map(TierId::new)
        .transpose()
        .map_err(bad_request)?;
    let filter = Filter::new(tier, query.kind, &query.words);
    let entries = admin.store.entries(query.before, filter, limit);
    let entries = entries.await?;
    Ok(Json(EventLog { entries }))
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RequestsQuery {
    #[serde(default = "default_requests")]
    #[param(minimum = 1, maximum = 500)]
    limit: usize,
    /// Leaves out requests up to this id: those that are known already.
    #[serde(default)]
    after: u64,
}

fn default_requests() -> usize {
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
    reach(Owner, Reads),
    params(RequestsQuery),
    responses((status = 200, description = "The requests", body = Requests)),
)]
pub(crate) async fn requests(
    State(admin): AdminState,
    QueryFields(RequestsQuery { limit, after }): QueryFields<RequestsQuery>,
) -> Answer<Requests> {
    check_range("limit", limit, 1..=RecentRequests::KEPT)?;
    let mut requests = admin.inference.metrics.recent_requests(limit);
    requests.retain(|request| request.id > after);
    Ok(Json(Requests { requests }))
}

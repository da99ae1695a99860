//! What happened to the tiers, and why.

use super::models::read_query;
use crate::{admin::Admin, http::error::Failure};
use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use tierbar_core::{Code, Error, TierId};

const LONGEST_PAGE: u32 = 1000;

#[derive(Debug, Deserialize)]
pub(crate) struct Question {
    /// The id that the page before ended with.
    before: Option<u64>,
    #[serde(default = "hundred")]
    limit: u32,
    tier: Option<String>,
}

fn hundred() -> u32 {
    100
}

pub(crate) async fn log(
    State(admin): State<Arc<Admin>>,
    question: Result<Query<Question>, QueryRejection>,
) -> Result<Json<Value>, Failure> {
    let Question {
        before,
        limit,
        tier,
    } = read_query(question)?;
    if !(1..=LONGEST_PAGE).contains(&limit) {
        let message = format!("limit is {limit}; it must be between 1 and {LONGEST_PAGE}");
        return Err(Error::new(Code::BadRequest, message).into());
    }
    // One that is configured no more may have a past.
    let tier = tier
        .map(TierId::new)
        .transpose()
        .map_err(|wrong| Error::new(Code::BadRequest, wrong))?;
    let entries = admin.store.entries(before, tier, limit).await?;
    Ok(Json(json!({"entries": entries})))
}

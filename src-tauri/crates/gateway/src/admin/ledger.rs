//! What requests took: tokens, energy and money, by day, tier and client.

use super::models::read_query;
use crate::admin::Admin;
use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
};
use jiff::{Zoned, civil::Date};
use serde::Deserialize;
use std::sync::Arc;
use tierbar_core::{Code, Error, ledger::LedgerReport};
use tierbar_http::{error::Failure, schema::Errors};

/// As many are kept.
const MOST_DAYS: u32 = 366;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Span {
    /// The last days, today included.
    #[serde(default = "default_days")]
    days: u32,
}

fn default_days() -> u32 {
    30
}

/// Returns what requests took, by day, tier and client, at the prices of the configuration.
#[utoipa::path(
    get,
    path = "/tierbar/v1/ledger",
    tag = "owner",
    operation_id = "ledger",
    reach(Owner, Reads),
    params(Span),
    responses((status = 200, description = "The ledger", body = LedgerReport), Errors),
)]
pub(crate) async fn ledger(
    State(admin): State<Arc<Admin>>,
    span: Result<Query<Span>, QueryRejection>,
) -> Result<Json<LedgerReport>, Failure> {
    let asked = read_query(span)?.days;
    if !(1..=MOST_DAYS).contains(&asked) {
        let message = format!("days is {asked}; it must be between 1 and {MOST_DAYS}");
        return Err(Error::new(Code::BadRequest, message).into());
    }
    admin.inference.metrics.save_ledger(&admin.store).await;
    let taken = admin.store.taken(asked).await?;
    let first: Option<Date> = taken.last().and_then(|(key, _)| key.day.parse().ok());
    let days = first.map_or(0, |first| days_since(first, Zoned::now().date()));
    let prices = admin.services.config().costs;
    Ok(Json(LedgerReport::of(taken, days, &prices)))
}

/// Both included.
fn days_since(first: Date, today: Date) -> u32 {
    let passed = today.duration_since(first).as_hours() / 24;
    u32::try_from(passed + 1).unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date;

    #[test]
    fn the_first_day_and_today_count() {
        let today = date(2026, 11, 26);
        assert_eq!(days_since(today, today), 1);
        assert_eq!(days_since(date(2026, 10, 28), today), 30);
        assert_eq!(days_since(date(2026, 11, 27), today), 1, "a clock set back");
    }
}

//! What tasks and requests took here, and saved elsewhere; and when a machine has paid for itself.

use crate::admin::AdminState;
use axum::{Json, extract::State};
use jiff::{Zoned, civil::Date};
use serde::Deserialize;
use tierbar_core::{bad_request, ledger::LedgerReport};
use tierbar_http::{
    Answer,
    request::{JsonBody, QueryFields, check_range},
};
use tierbar_measure::break_even::{BreakEven, BreakEvenInputs};
use tierbar_tasks::saved::Costs;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct CostsQuery {
    #[serde(default = "super::default_days")]
    days: u32,
}

/// Returns what tasks computed here, and what that would have cost elsewhere.
#[utoipa::path(
    get,
    path = "/tierbar/v1/costs",
    reach(Owner, Reads),
    params(CostsQuery),
    responses((status = 200, description = "The costs", body = Costs)),
)]
pub(crate) async fn costs(
    State(admin): AdminState,
    QueryFields(CostsQuery { days }): QueryFields<CostsQuery>,
) -> Answer<Costs> {
    check_range("days", days, 1..=super::MOST_DAYS)?;
    Ok(Json(admin.store.costs(days).await?))
}

/// Returns after how many months a machine has paid for itself, by these figures alone.
#[utoipa::path(
    post,
    path = "/tierbar/v1/costs/break-even",
    operation_id = "breakEven",
    reach(Owner, Reads),
    request_body = BreakEvenInputs,
    responses((status = 200, description = "The sum", body = BreakEven)),
)]
pub(crate) async fn break_even(JsonBody(inputs): JsonBody<BreakEvenInputs>) -> Answer<BreakEven> {
    let sum = inputs.sum();
    Ok(Json(sum.map_err(bad_request)?))
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Span {
    /// The last days, today included.
    #[serde(default = "super::default_days")]
    days: u32,
}

/// Returns what requests took, by day, tier and client, at the prices of the configuration.
#[utoipa::path(
    get,
    path = "/tierbar/v1/ledger",
    reach(Owner, Reads),
    params(Span),
    responses((status = 200, description = "The ledger", body = LedgerReport)),
)]
pub(crate) async fn ledger(
    State(admin): AdminState,
    QueryFields(Span { days: asked }): QueryFields<Span>,
) -> Answer<LedgerReport> {
    check_range("days", asked, 1..=super::MOST_DAYS)?;
    admin.inference.metrics.save_ledger(&admin.store).await;
    let taken = admin.store.taken(asked).await?;
    let first: Option<Date> = taken.last().and_then(|(key, _)| key.day.parse().ok());
    let days = first.map_or(0, |first| days_since(first, Zoned::now().date()));
    let prices = admin.services.config().costs;
    Ok(Json(LedgerReport::at_prices(taken, days, &prices)))
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

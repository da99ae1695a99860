//! Measures and tunes a tier, as a stream of events, and returns the last report.

use super::tiers::find_tier;
use crate::admin::{Admin, AdminState};
use axum::{
    Json,
    extract::State,
    response::{Response, sse::Event},
};
use futures_util::{StreamExt, stream};
use serde::Serialize;
use tierbar_core::bad_request;
use tierbar_http::{
    Answer,
    error::Failure,
    path::Id,
    request::JsonBody,
    sse::{self, json_event},
};
use tierbar_inference::services::measures::Measurement;
use tierbar_measure::{
    bench::{BenchReport, BenchRequest},
    tune::{TuneReport, TuneRequest},
};
use utoipa::ToSchema;

/// The latest measurement.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LastBench {
    report: Option<BenchReport>,
}

/// The latest tuning.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LastTune {
    report: Option<TuneReport>,
}

/// Measures the speed of a tier.
#[utoipa::path(
    post,
    path = "/tierbar/v1/tiers/{id}/bench",
    operation_id = "benchTier",
    reach(Owner, Writes, Spends),
    params(("id" = String, Path, description = "The name of a tier")),
    request_body = BenchRequest,
    responses((status = 200, description = "Server-sent events: `progress`, `row`, and a `report` or an `error` at the end", content(("text/event-stream")))),
)]
pub(crate) async fn bench(
    State(admin): AdminState,
    Id(name): Id,
    JsonBody(ask): JsonBody<BenchRequest>,
) -> Result<Response, Failure> {
    ask.check().map_err(bad_request)?;
    let tier = find_tier(&admin, &name)?;
    let measurement = admin.measures.bench(tier, ask)?;
    Ok(events(&admin, measurement))
}

/// Finds the fastest settings of a tier, and writes them to the configuration.
#[utoipa::path(
    post,
    path = "/tierbar/v1/tiers/{id}/tune",
    operation_id = "tuneTier",
    reach(Owner, Writes, Spends),
    params(("id" = String, Path, description = "The name of a tier")),
    request_body = TuneRequest,
    responses((status = 200, description = "Server-sent events: `progress`, `row`, and a `report` or an `error` at the end", content(("text/event-stream")))),
)]
pub(crate) async fn tune(
    State(admin): AdminState,
    Id(name): Id,
    JsonBody(ask): JsonBody<TuneRequest>,
) -> Result<Response, Failure> {
    ask.check().map_err(bad_request)?;
    let tier = find_tier(&admin, &name)?;
    let measurement = admin.measures.tune(tier, ask)?;
    Ok(events(&admin, measurement))
}

/// Measures how well a tier's model chooses an agent's first step, by tool calls and by text. Nothing is carried out. The
/// report is a `Mark` of the model.
#[utoipa::path(
    post,
    path = "/tierbar/v1/tiers/{id}/agent",
    operation_id = "measureAgent",
    reach(Owner, Writes, Spends),
    params(("id" = String, Path, description = "The name of a tier")),
    responses((status = 200, description = "Server-sent events: `progress`, and a `report` or an `error` at the end", content(("text/event-stream")))),
)]
pub(crate) async fn agent(State(admin): AdminState, Id(name): Id) -> Result<Response, Failure> {
    let tier = find_tier(&admin, &name)?;
    let measurement = admin.measures.agent(tier)?;
    Ok(events(&admin, measurement))
}

/// Returns the latest report of a measurement.
#[utoipa::path(
    get,
    path = "/tierbar/v1/tiers/{id}/bench",
    operation_id = "lastBench",
    reach(Owner, Reads),
    params(("id" = String, Path, description = "The name of a tier")),
    responses((status = 200, description = "The report; `null` if there is none", body = LastBench)),
)]
pub(crate) async fn last_bench(State(admin): AdminState, Id(name): Id) -> Answer<LastBench> {
    let tier = find_tier(&admin, &name)?;
    let report = admin.measures.last_bench(tier).await?;
    Ok(Json(LastBench { report }))
}

/// Returns the latest report of tuning.
#[utoipa::path(
    get,
    path = "/tierbar/v1/tiers/{id}/tune",
    operation_id = "lastTune",
    reach(Owner, Reads),
    params(("id" = String, Path, description = "The name of a tier")),
    responses((status = 200, description = "The report; `null` if there is none", body = LastTune)),
)]
pub(crate) async fn last_tune(State(admin): AdminState, Id(name): Id) -> Answer<LastTune> {
    let tier = find_tier(&admin, &name)?;
    let report = admin.measures.last_tune(tier).await?;
    Ok(Json(LastTune { report }))
}

/// The measurement belongs to the stream: it is called off when the client goes away.
fn events(admin: &Admin, measurement: Measurement) -> Response {
    let events = stream::unfold(measurement, |mut measurement| async {
        let (name, data) = measurement.events.recv().await?.wire();
        Some((json_event(Event::default().event(name), &data), measurement))
    });
    let closing = admin.inference.closing.clone().cancelled_owned();
    sse::response(events.take_until(closing))
}

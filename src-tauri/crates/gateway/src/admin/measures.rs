//! Measuring a tier and tuning it: a stream of events while it runs, and what the last one told.

use super::tiers::existing;
use crate::{
    admin::Admin,
    http::{body, error::Failure, path::Id},
    services::measures::{MeasureEvent, Measurement},
};
use axum::{
    Json,
    body::Body,
    extract::State,
    response::sse::{Event, KeepAlive, Sse},
};
use futures_util::{Stream, StreamExt, stream};
use serde_json::{Value, json};
use std::{convert::Infallible, sync::Arc, time::Duration};
use tierbar_core::{Code, Error, bench::BenchRequest, tune::TuneRequest};

/// A load may be silent for longer than clients and proxies wait.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

pub(crate) async fn bench(
    State(admin): State<Arc<Admin>>,
    Id(name): Id,
    body: Body,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>> + Send>, Failure> {
    let ask: BenchRequest = body::object(body).await?;
    ask.check().map_err(refused)?;
    let tier = existing(&admin, &name)?;
    let measurement = admin.measures.bench(tier, ask)?;
    Ok(events(&admin, measurement))
}

pub(crate) async fn tune(
    State(admin): State<Arc<Admin>>,
    Id(name): Id,
    body: Body,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>> + Send>, Failure> {
    let ask: TuneRequest = body::object(body).await?;
    ask.check().map_err(refused)?;
    let tier = existing(&admin, &name)?;
    let measurement = admin.measures.tune(tier, ask)?;
    Ok(events(&admin, measurement))
}

pub(crate) async fn last_bench(
    State(admin): State<Arc<Admin>>,
    Id(name): Id,
) -> Result<Json<Value>, Failure> {
    let tier = existing(&admin, &name)?;
    let report = admin.measures.last_bench(tier).await?;
    Ok(Json(json!({"report": report})))
}

pub(crate) async fn last_tune(
    State(admin): State<Arc<Admin>>,
    Id(name): Id,
) -> Result<Json<Value>, Failure> {
    let tier = existing(&admin, &name)?;
    let report = admin.measures.last_tune(tier).await?;
    Ok(Json(json!({"report": report})))
}

fn refused(why: String) -> Error {
    Error::new(Code::BadRequest, why)
}

/// The measurement belongs to the stream: it is called off when the client goes away.
fn events(
    admin: &Admin,
    measurement: Measurement,
) -> Sse<impl Stream<Item = Result<Event, Infallible>> + Send + use<>> {
    let rendered = stream::unfold(measurement, |mut measurement| async {
        let event = measurement.events.recv().await?;
        Some((event, measurement))
    });
    let closing = admin.inference.closing.clone().cancelled_owned();
    let events = rendered.take_until(closing).map(|event: MeasureEvent| {
        let (name, data) = event.wire();
        Ok(Event::default().event(name).data(data.to_string()))
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
}

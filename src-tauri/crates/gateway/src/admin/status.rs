//! The status, once and as a stream of changes.

use super::models::read_query;
use crate::{
    admin::{Admin, events::Changes},
    http::{error::Failure, schema::Errors},
};
use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
    response::sse::{Event, KeepAlive, Sse},
};
use futures_util::{Stream, StreamExt, stream};
use serde::Deserialize;
use std::{convert::Infallible, sync::Arc, time::Duration};
use tierbar_core::status::Status;

/// Often enough for proxies, and for a dead connection to be noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Returns the status: tiers, memory, downloads and what Tierbar does.
#[utoipa::path(
    get,
    path = "/tierbar/v1/status",
    tag = "owner",
    operation_id = "status",
    security(("token" = [])),
    responses((status = 200, description = "The status", body = Status), Errors),
)]
pub(crate) async fn status(State(admin): State<Arc<Admin>>) -> Json<Status> {
    Json(Status::clone(&admin.services.status()))
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Watcher {
    /// The watcher is an app: it shows the chat window at each `raise` event, which `POST /tierbar/v1/raise` sends.
    #[serde(default)]
    windows: bool,
}

/// Streams the status, then each change of it, the events of tiers, and that chats changed.
#[utoipa::path(
    get,
    path = "/tierbar/v1/events",
    tag = "owner",
    operation_id = "events",
    security(("token" = [])),
    params(Watcher),
    responses((status = 200, description = "Server-sent events: `snapshot`, then `change`, `log`, `chats` and `raise`", content(("text/event-stream"))), Errors),
)]
pub(crate) async fn events(
    State(admin): State<Arc<Admin>>,
    watcher: Result<Query<Watcher>, QueryRejection>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>> + Send>, Failure> {
    let windows = read_query(watcher)?.windows;
    let changes = stream::unfold(
        Changes::new(
            admin.services.watch(),
            admin.services.log(),
            admin.jobs.watch_chats(),
            windows.then(|| admin.raise.subscribe()),
        ),
        |mut changes| async {
            let (name, data) = changes.next().await?;
            Some((
                Ok(Event::default().event(name).data(data.to_string())),
                changes,
            ))
        },
    );
    let closing = admin.inference.closing.clone().cancelled_owned();
    Ok(Sse::new(changes.take_until(closing)).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

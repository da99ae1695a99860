//! The status, once and as a stream of changes.

use crate::admin::{Admin, events::Changes};
use axum::{
    Json,
    extract::State,
    response::sse::{Event, KeepAlive, Sse},
};
use futures_util::{Stream, StreamExt, stream};
use std::{convert::Infallible, sync::Arc, time::Duration};
use tierbar_core::status::Status;
use tierbar_http::schema::Errors;

/// Often enough for proxies, and for a dead connection to be noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Returns the status: tiers, memory, downloads and what Tierbar does.
#[utoipa::path(
    get,
    path = "/tierbar/v1/status",
    tag = "owner",
    operation_id = "status",
    reach(Owner, Reads),
    responses((status = 200, description = "The status", body = Status), Errors),
)]
pub(crate) async fn status(State(admin): State<Arc<Admin>>) -> Json<Status> {
    Json(Status::clone(&admin.services.status()))
}

/// Streams the status, then each change of it, the events of tiers, and that chats changed.
#[utoipa::path(
    get,
    path = "/tierbar/v1/events",
    tag = "owner",
    operation_id = "events",
    reach(Owner, Reads),
    responses((status = 200, description = "Server-sent events: `snapshot`, then `change`, `log` and `chats`", content(("text/event-stream"))), Errors),
)]
pub(crate) async fn events(
    State(admin): State<Arc<Admin>>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>> + Send> {
    let changes = stream::unfold(
        Changes::new(
            admin.services.watch(),
            admin.services.log(),
            admin.jobs.watch_chats(),
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
    Sse::new(changes.take_until(closing)).keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
}

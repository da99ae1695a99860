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

/// Often enough for proxies, and for a dead connection to be noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

pub(crate) async fn status(State(admin): State<Arc<Admin>>) -> Json<Status> {
    Json(Status::clone(&admin.services.status()))
}

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

//! Server-sent events.

use axum::response::{
    IntoResponse, Response,
    sse::{Event, KeepAlive, Sse},
};
use futures_util::{Stream, StreamExt};
use serde::Serialize;
use std::{convert::Infallible, time::Duration};

/// A stream may be silent for longer than clients and proxies wait.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// Adds data to an event, behind the name or the id that it has.
pub fn json_event(event: Event, data: &impl Serialize) -> Event {
    event.data(serde_json::to_string(data).unwrap_or_default())
}

/// Returns the events as a response.
pub fn response(events: impl Stream<Item = Event> + Send + 'static) -> Response {
    Sse::new(events.map(Ok::<_, Infallible>))
        .keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
        .into_response()
}

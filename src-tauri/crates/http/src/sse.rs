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

/// Returns an event with this data.
pub fn json_event(data: &impl Serialize) -> Event {
    Event::default().data(serde_json::to_string(data).unwrap_or_default())
}

/// Returns the events as a response.
pub fn response(events: impl Stream<Item = Event> + Send + 'static) -> Response {
    Sse::new(events.map(Ok::<_, Infallible>))
        .keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
        .into_response()
}

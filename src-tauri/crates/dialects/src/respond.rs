//! Answers over HTTP: each dialect renders the events of [`Inference::ask`], one by one as they arrive or gathered.

use axum::{
    Json,
    body::{Body, Bytes},
    http::{HeaderName, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_util::{Stream, StreamExt};
use serde_json::Value;
use std::{convert::Infallible, future, sync::Arc};
use tierbar_http::error::Failure;
use tierbar_inference::{
    Inference,
    ask::{AnswerFailure, CompleteAnswer, Event},
    caller::Caller,
    dispatch::QueuePermission,
    error::seconds_of,
    request::Request,
    response::pieces,
    source::Source,
};

/// The most events that are sent in one piece.
const MOST_AT_ONCE: usize = 64;

pub const JSON: [(HeaderName, &str); 1] = [(header::CONTENT_TYPE, "application/json")];

/// Renders one answer.
pub trait Dialect: Send + 'static {
    /// The content type of its streams.
    const STREAM: &'static str;

    /// The answer's events pass as they came, in this dialect: what follows is no answer of its own.
    fn passes(&mut self) {}

    /// Renders an event of a stream; empty for one that the dialect has no form for.
    fn event(&mut self, event: Event) -> String;

    /// Renders a complete answer.
    fn whole(self, answer: CompleteAnswer) -> Value;
}

/// Asks for an answer and renders it. `dialect` is made when it is known where the answer comes from.
pub async fn respond<D: Dialect>(
    inference: &Arc<Inference>,
    request: Request,
    dialect: impl FnOnce(&Source) -> D,
) -> Response {
    let streams = request.stream;
    let answer = match inference.ask(request, Caller::of_this_request()).await {
        Ok(answer) => answer,
        Err(failed) => return refusal(failed),
    };
    let dialect = dialect(answer.source());
    if streams {
        let headers = answer.source().headers();
        let about = [
            (header::CONTENT_TYPE, D::STREAM),
            (header::CACHE_CONTROL, "no-cache"),
        ];
        return (headers, about, stream(dialect, answer)).into_response();
    }
    match answer.gather().await {
        // How full the context was is known by now.
        Ok(whole) => {
            let headers = whole.source.headers();
            match whole.passed.is_empty() {
                true => (headers, Json(dialect.whole(whole))).into_response(),
                false => (headers, JSON, Body::new(pieces(whole.passed))).into_response(),
            }
        }
        Err(failed) => refusal(failed),
    }
}

fn stream<D: Dialect>(mut dialect: D, answer: impl Stream<Item = Event> + Send + 'static) -> Body {
    let pieces = answer.ready_chunks(MOST_AT_ONCE).filter_map(move |events| {
        let piece = render(&mut dialect, events);
        future::ready((!piece.is_empty()).then(|| Ok::<_, Infallible>(piece)))
    });
    Body::from_stream(pieces)
}

fn render<D: Dialect>(dialect: &mut D, mut events: Vec<Event>) -> Bytes {
    // Nearly all that passes comes by itself, and is not copied.
    if let [Event::Passed(bytes)] = &mut *events {
        dialect.passes();
        return std::mem::take(bytes);
    }
    let mut piece = Vec::new();
    for event in events {
        match event {
            Event::Passed(bytes) => {
                dialect.passes();
                piece.extend_from_slice(&bytes);
            }
            event => piece.extend_from_slice(dialect.event(event).as_bytes()),
        }
    }
    piece.into()
}

/// Why there is no answer, in the words of a server that speaks the client's dialect, with the headers of the tier or chain that has refused, and whether the request may wait.
fn refusal(failed: AnswerFailure) -> Response {
    let AnswerFailure {
        error,
        status,
        body,
        may_wait,
        source,
    } = failed;
    let status = status.and_then(|status| StatusCode::from_u16(status).ok());
    let mut response = match status.zip(body) {
        Some((status, body)) => {
            let mut response = (status, JSON, Body::from(body)).into_response();
            if let Some(seconds) = seconds_of(&error) {
                response
                    .headers_mut()
                    .insert(header::RETRY_AFTER, seconds.into());
            }
            response
        }
        None => Failure(error).into_response(),
    };
    if source.tier.is_some() || source.chain.is_some() {
        response.headers_mut().extend(source.headers());
    }
    if may_wait {
        response.extensions_mut().insert(QueuePermission);
    }
    response
}

#[cfg(test)]
mod tests;

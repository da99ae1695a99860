//! Answers over HTTP: each dialect renders the events of [`Inference::ask`], one by one as they arrive or gathered.

use axum::{
    body::{Body, Bytes},
    http::{HeaderName, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_util::{Stream, StreamExt, stream::iter};
use std::{convert::Infallible, sync::Arc};
use tierbar_http::error::Failure;
use tierbar_inference::{
    Inference,
    ask::{AnswerFailure, CompleteAnswer, Event},
    caller::Caller,
    dispatch::QueuePermission,
    error::seconds_of,
    held::leaving,
    pieces::Pieces,
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
    /// In pieces, if it holds a text several times.
    type Rendered: Into<Pieces>;

    /// The answer's events pass as they came, in this dialect: what follows is no answer of its own.
    fn passes(&mut self) {}

    /// Renders an event of a stream; empty for one that the dialect has no form for.
    fn event(&mut self, event: Event) -> Self::Rendered;

    /// Renders a complete answer.
    fn whole(self, answer: CompleteAnswer) -> Self::Rendered;
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
            let body = match whole.passed.is_empty() {
                true => leaving(Into::<Pieces>::into(dialect.whole(whole)).into_bytes()),
                false => whole.passed,
            };
            (headers, JSON, Body::new(pieces(body))).into_response()
        }
        Err(failed) => refusal(failed),
    }
}

fn stream<D: Dialect>(mut dialect: D, answer: impl Stream<Item = Event> + Send + 'static) -> Body {
    let pieces = answer
        .ready_chunks(MOST_AT_ONCE)
        .flat_map(move |events| iter(render(&mut dialect, events)));
    Body::from_stream(pieces.map(Ok::<_, Infallible>))
}

fn render<D: Dialect>(dialect: &mut D, events: Vec<Event>) -> Vec<Bytes> {
    let (mut pieces, mut passes) = (Pieces::default(), false);
    for event in events {
        match event {
            Event::Passed(bytes) => {
                dialect.passes();
                passes = true;
                pieces.push(bytes);
            }
            event => pieces.append(dialect.event(event).into()),
        }
    }
    let pieces = pieces.into_bytes();
    // What passes is counted already.
    match passes {
        true => pieces,
        false => leaving(pieces),
    }
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

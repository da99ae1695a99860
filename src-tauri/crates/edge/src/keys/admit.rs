//! Admission: one layer around all routes lets callers in by the reach of the route, and charges requests for their memory.

use super::{Key, Weight, secret};
use crate::{
    Edge, KEY_PREFIX,
    nearest::method_not_allowed,
    origin::bearer,
    sessions::{self, SessionMark, check_fresh},
};
use axum::{
    body::{Body, Bytes},
    extract::{MatchedPath, State},
    http::{HeaderMap, HeaderValue, Method, Request, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use std::sync::Arc;
use tierbar_core::{Code, Error};
use tierbar_http::{
    error::Failure,
    reach::{Part, Reach, Reaches, SEND_TOKEN, Sender},
};
use tierbar_inference::{body, held::KEPT_PART};

const AS_LINES: &str = "send one JSON object per line with the content type application/x-ndjson: lines are read one at a time";

/// Whom a route has let in, with the API key or the session that was shown.
type IdentifiedSender = (Sender, Option<Arc<Key>>, Option<SessionMark>);

/// Lets in whom the reach of the route allows. What has none is refused, and what has no route is the page's files.
pub async fn admit(
    State((edge, reaches)): State<(Arc<Edge>, Arc<Reaches>)>,
    request: Request<Body>,
    next: Next,
) -> Response {
    let Some(path) = request.extensions().get::<MatchedPath>() else {
        return next.run(request).await;
    };
    match reaches.reach_of(path.as_str(), request.method().as_str()) {
        Some(reach) if reach.has(Part::Anyone) => next.run(request).await,
        Some(reach) => let_in(&edge, reach, request, next)
            .await
            .unwrap_or_else(|error| Failure(error).into_response()),
        None => {
            let allowed = reaches.methods(path.as_str()).join(", ");
            let (method, uri) = (request.method().clone(), request.uri().clone());
            let mut refused = method_not_allowed(method, uri).await.into_response();
            if let Ok(allowed) = HeaderValue::try_from(allowed) {
                refused.headers_mut().insert(header::ALLOW, allowed);
            }
            refused
        }
    }
}

async fn let_in(
    edge: &Edge,
    reach: Reach,
    mut request: Request<Body>,
    next: Next,
) -> Result<Response, Error> {
    let (sender, key, session) = identify(edge, reach, request.headers()).await?;
    let is_owner = sender == Sender::Owner;
    request.extensions_mut().insert(sender);
    if let Some(session) = session {
        request.extensions_mut().insert(session);
    }
    // Lists cost nothing.
    let has_body = ![Method::GET, Method::HEAD].contains(request.method());
    if reach.has(Part::Streams) || !(has_body || reach.has(Part::Counts)) {
        return Ok(next.run(request).await);
    }
    // Reads the whole body first, so that a slow client takes no place.
    let (head, body) = request.into_parts();
    let mut weight = edge.keys.weigh(key.clone());
    if is_owner {
        weight = weight.of_the_owner();
    }
    let body = read_body(body, &mut weight).await?;
    let grown = weight.grow_by_values(&body, reach.reads_lines(&head.headers));
    grown.map_err(|error| match reach.has(Part::Lines) {
        true if error.code == Code::PayloadTooLarge => error.hint(AS_LINES),
        _ => error,
    })?;
    let request = Request::from_parts(head, Body::from(body));
    if !reach.has(Part::Counts) {
        let response = next.run(request).await;
        return Ok(response.map(|body| weight.with(body)));
    }
    let most = usize::from(edge.services.config().server.requests_at_once);
    let kept = if is_owner { 0 } else { most / KEPT_PART };
    let admitted = edge.keys.enter(key, weight, most - kept)?;
    let response = admitted.answers(next.run(request)).await;
    Ok(response.map(|body| admitted.with(body)))
}

/// Reads a body and charges it.
///
/// # Errors
/// Those of [`body::read`]; `Overloaded` while there is no room for it.
async fn read_body(body: Body, weight: &mut Weight) -> Result<Bytes, Error> {
    let read = body::collect(body, body::INFERENCE_LIMIT, |more| {
        // The rest of a refused body is dropped as it arrives.
        weight.grow(more).inspect_err(|_| weight.release())
    });
    read.await
}

/// Returns who sends a request, if a route of this reach lets them in.
///
/// # Errors
/// `Unauthorized` without the credentials; `Forbidden` for a session that is too old for what widens access.
async fn identify(
    edge: &Edge,
    reach: Reach,
    headers: &HeaderMap,
) -> Result<IdentifiedSender, Error> {
    let is_code = |given: &str| reach.has(Part::SignIn) && edge.codes.take(given);
    if bearer(headers).is_some_and(|given| edge.token.is(given) || is_code(given)) {
        return Ok((Sender::Owner, None, None));
    }
    // A session that could make another would renew itself for ever.
    let takes_sessions = !(reach.has(Part::Token) || reach.has(Part::SignIn));
    if takes_sessions && let Some(session) = sessions::find(edge, headers).await {
        if reach.has(Part::Runs) {
            check_fresh(Some(&session), "run programs or agents")?;
        } else if reach.widens() {
            check_fresh(Some(&session), "widen access")?;
        }
        return Ok((Sender::Owner, None, Some(session)));
    }
    if !reach.has(Part::Inference) {
        return Err(no_token(headers));
    }
    if secret::credentials(headers).any(|given| edge.token.is(given)) {
        return Ok((Sender::Owner, None, None));
    }
    // An invalid Tierbar key is refused even where none is needed, since the client relies on it.
    if let Some(given) = secret::credentials(headers).find(|given| given.starts_with(KEY_PREFIX)) {
        let key = edge.keys.find(given)?;
        return Ok((Sender::Key(key.id.clone()), Some(key), None));
    }
    if !edge.needs_key() {
        return Ok((Sender::Program, None, None));
    }
    let message = if secret::credentials(headers).next().is_some() {
        "this API key is not valid here"
    } else {
        "an API key is required"
    };
    Err(Error::new(Code::Unauthorized, message).hint(
        "create one with `tierbar key add NAME` and send it as \"Authorization: Bearer KEY\" or \"x-api-key: KEY\"",
    ))
}

fn no_token(headers: &HeaderMap) -> Error {
    let message = match secret::credentials(headers).next() {
        Some(key) if key.starts_with(KEY_PREFIX) => "an API key gives access to inference only",
        _ if headers.contains_key(header::AUTHORIZATION) => "the token is wrong",
        _ => "the token is required",
    };
    Error::new(Code::Unauthorized, message).hint(SEND_TOKEN)
}

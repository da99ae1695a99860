//! Admission to inference: which senders may use it, and how much at the same time.

use super::{Weight, secret};
use crate::{
    Edge, KEY_PREFIX,
    origin::{self, CrossOriginMark},
};
use axum::{
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, Method, Request},
    middleware::Next,
    response::{IntoResponse, Response},
};
use std::sync::Arc;
use tierbar_core::{Code, Error};
use tierbar_http::error::Failure;
use tierbar_inference::body;

/// One place in so many is kept for the owner, whom no other client can lock out.
pub(super) const KEPT_PART: usize = 8;
const AS_LINES: &str = "send one JSON object per line with the content type application/x-ndjson: lines are read one at a time";

/// The sender of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sender {
    /// With the token, or a session.
    Owner,
    /// With the key of this id.
    Key(String),
    /// A program on this machine that shows neither.
    Program,
}

/// Admits requests with a key or the token, and all requests on loopback unless keys are required there.
pub async fn admit(
    State(edge): State<Arc<Edge>>,
    mut request: Request<Body>,
    next: Next,
) -> Response {
    let (sender, key) = match find_sender(&edge, request.headers()).await {
        Ok(who) => who,
        Err(error) => return Failure(error).into_response(),
    };
    let is_owner = sender == Sender::Owner;
    let path = request.uri().path().to_owned();
    if (edge.is_owners_path)(&path) {
        let of_another_page = request.extensions().get::<CrossOriginMark>().is_some();
        if let Err(error) = owns_contexts(&sender, of_another_page) {
            return Failure(error).into_response();
        }
    }
    request.extensions_mut().insert(sender);
    // Lists cost nothing; a follower counts like a request.
    if request.method() != Method::POST && !(edge.is_held_path)(&path) {
        return next.run(request).await;
    }
    // Reads the whole body first, so that a slow client takes no place.
    let (head, body) = request.into_parts();
    let mut weight = edge.keys.weigh(key.clone());
    if is_owner {
        weight = weight.of_the_owner();
    }
    let is_lines = (edge.reads_lines)(&path, &head.headers);
    let read = read(body, &mut weight).await.and_then(|body| {
        let made = weight.grow_by_values(&body, is_lines);
        made.map_err(|error| match (edge.takes_lines)(&path) {
            true if error.code == Code::PayloadTooLarge => error.hint(AS_LINES),
            _ => error,
        })?;
        Ok(body)
    });
    let most = usize::from(edge.services.config().server.requests_at_once);
    let kept = if is_owner { 0 } else { most / KEPT_PART };
    let entered = read.and_then(|body| Ok((edge.keys.enter(key, weight, most - kept)?, body)));
    let (admitted, body) = match entered {
        Ok(entered) => entered,
        Err(error) => return Failure(error).into_response(),
    };
    let request = Request::from_parts(head, Body::from(body));
    let response = admitted.answers(next.run(request)).await;
    response.map(|body| admitted.with(body))
}

/// # Errors
/// `Forbidden` with an API key, and for another origin's page without the token: such a page is not the user's.
fn owns_contexts(sender: &Sender, of_another_page: bool) -> Result<(), Error> {
    let (message, hint) = match sender {
        Sender::Key(_) => (
            "an API key gives no access to saved contexts",
            "use the token, or call from this machine",
        ),
        Sender::Program if of_another_page => (
            "pages of other apps and sites have no access to saved contexts",
            "use the token, or call from a program on this machine",
        ),
        Sender::Program | Sender::Owner => return Ok(()),
    };
    Err(Error::new(Code::Forbidden, message).hint(hint))
}

/// Charges the requests of the owner's API for their memory, like all others. Not those that send files, which may be larger than any
/// other body: they charge their own.
pub async fn charge(State(edge): State<Arc<Edge>>, request: Request<Body>, next: Next) -> Response {
    charge_body(edge.keys.weigh(None).of_the_owner(), request, next).await
}

/// Passes requests of admitted senders, and charges them for their memory. They take no place: each request that comes of
/// one is admitted by itself.
pub async fn identify(
    State(edge): State<Arc<Edge>>,
    request: Request<Body>,
    next: Next,
) -> Response {
    match find_sender(&edge, request.headers()).await {
        Ok((Sender::Owner, _)) => {
            charge_body(edge.keys.weigh(None).of_the_owner(), request, next).await
        }
        Ok((_, key)) => charge_body(edge.keys.weigh(key), request, next).await,
        Err(error) => Failure(error).into_response(),
    }
}

async fn charge_body(mut weight: Weight, request: Request<Body>, next: Next) -> Response {
    let (head, body) = request.into_parts();
    let read = read(body, &mut weight).await;
    let body = match read.and_then(|body| weight.grow_by_values(&body, false).map(|()| body)) {
        Ok(body) => Body::from(body),
        Err(error) => return Failure(error).into_response(),
    };
    let response = next.run(Request::from_parts(head, body)).await;
    response.map(|body| weight.with(body))
}

/// Reads a body and charges it.
///
/// # Errors
/// Those of [`body::read`]; `Overloaded` while there is no room for it.
async fn read(body: Body, weight: &mut Weight) -> Result<Bytes, Error> {
    let read = body::collect(body, body::INFERENCE_LIMIT, |more| {
        // The rest of a refused body is dropped as it arrives.
        weight.grow(more).inspect_err(|_| weight.release())
    });
    read.await
}

/// Returns the sender of a request, and the key, if it has one.
async fn find_sender(
    edge: &Edge,
    headers: &HeaderMap,
) -> Result<(Sender, Option<Arc<super::Key>>), Error> {
    if origin::is_owner(edge, headers).await
        || secret::credentials(headers).any(|given| edge.token.is(given))
    {
        return Ok((Sender::Owner, None));
    }
    // An invalid Tierbar key is refused even where none is needed, since the client relies on it.
    if let Some(given) = secret::credentials(headers).find(|given| given.starts_with(KEY_PREFIX)) {
        let key = edge.keys.find(given)?;
        return Ok((Sender::Key(key.id.clone()), Some(key)));
    }
    if !edge.needs_key() {
        return Ok((Sender::Program, None));
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

//! An id for each request: the client's own if it sends one. It is returned with the answer and precedes each line of the log.

use axum::{
    body::Body,
    http::{HeaderName, HeaderValue, Request},
    middleware::Next,
    response::Response,
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use tierbar_inference::headers::REQUEST_ID;
use tracing::Instrument;

/// Where Anthropic's clients read it.
static ANTHROPIC_ID: HeaderName = HeaderName::from_static("request-id");
const LONGEST: usize = 64;

/// The outermost layer: what refuses a request has a name for it too.
pub async fn assign(mut request: Request<Body>, next: Next) -> Response {
    let sent = request
        .headers()
        .get(&REQUEST_ID)
        .filter(|id| is_loggable(id));
    let id = sent.cloned().unwrap_or_else(random_id);
    // For errors that contain it, and who names further requests after it.
    request.headers_mut().insert(REQUEST_ID.clone(), id.clone());
    let span = tracing::info_span!("request", id = id.to_str().unwrap_or_default());
    // Neither the query nor the body: both may hold private text.
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    async move {
        let mut response = next.run(request).await;
        tracing::debug!(%method, path, status = response.status().as_u16(), "answered");
        let headers = response.headers_mut();
        headers.insert(ANTHROPIC_ID.clone(), id.clone());
        headers.insert(REQUEST_ID.clone(), id);
        response
    }
    .instrument(span)
    .await
}

/// Such as can stand in a line of a log.
fn is_loggable(id: &HeaderValue) -> bool {
    (1..=LONGEST).contains(&id.len()) && id.as_bytes().iter().all(u8::is_ascii_graphic)
}

fn random_id() -> HeaderValue {
    let mut random = [0u8; 12];
    // Without random numbers all requests have one name, which is a pity and no more.
    let _ = getrandom::fill(&mut random);
    let id = format!("req_{}", URL_SAFE_NO_PAD.encode(random));
    HeaderValue::try_from(id).unwrap_or(HeaderValue::from_static("req_"))
}

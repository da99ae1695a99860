//! A request for inference from axum's handlers.

use crate::error::Failure;
use axum::{body::Body, extract::FromRequestParts, http::request::Parts, response::Response};
use std::{convert::Infallible, sync::Arc, time::Instant};
use tierbar_inference::{Inference, body, dispatch, hints::Hints};

/// The headers of a request that choose its tier, or belong to its dialect.
#[derive(Debug)]
pub struct RequestHints(pub Hints);

impl<S: Send + Sync> FromRequestParts<S> for RequestHints {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(Hints::of(&parts.headers)))
    }
}

/// Answers a client's request, whose body is in OpenAI's form.
///
/// # Errors
/// Those of the body, of the way to a tier, and whatever keeps the answer from beginning.
pub async fn answer(
    inference: Arc<Inference>,
    path: &'static str,
    hints: Hints,
    body: Body,
) -> Result<Response, Failure> {
    let arrived = Instant::now();
    let body = body::read(body, body::INFERENCE_LIMIT).await?;
    let answer = dispatch::answer(inference, path, hints, body, arrived).await?;
    Ok(answer.map(Body::new))
}

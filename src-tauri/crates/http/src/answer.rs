//! A request for inference from axum's handlers, and an answer in JSON.

use crate::error::Failure;
use axum::{
    Json,
    body::Body,
    extract::{FromRequest, FromRequestParts, Request},
    http::request::Parts,
    response::Response,
};
use std::{convert::Infallible, sync::Arc, time::Instant};
use tierbar_inference::{Inference, body, dispatch, hints::Hints};

/// The answer of a handler in JSON.
pub type Answer<T> = Result<Json<T>, Failure>;

/// The headers of a request that choose its tier, or belong to its dialect.
#[derive(Debug)]
pub struct RequestHints(pub Hints);

impl<S: Send + Sync> FromRequestParts<S> for RequestHints {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(Hints::from_headers(&parts.headers)))
    }
}

/// A request for inference: what answers, its headers and its body.
#[derive(Debug)]
pub struct InferenceCall(pub Arc<Inference>, pub Hints, pub Body);

impl FromRequest<Arc<Inference>> for InferenceCall {
    type Rejection = Infallible;

    async fn from_request(request: Request, state: &Arc<Inference>) -> Result<Self, Infallible> {
        let hints = Hints::from_headers(request.headers());
        Ok(Self(Arc::clone(state), hints, request.into_body()))
    }
}

impl InferenceCall {
    /// Answers the request, whose body is in OpenAI's form.
    ///
    /// # Errors
    /// Those of the body, of the way to a tier, and whatever keeps the answer from beginning.
    pub async fn answer(self, path: &'static str) -> Result<Response, Failure> {
        let (Self(inference, hints, body), arrived) = (self, Instant::now());
        let body = body::read(body, body::INFERENCE_LIMIT).await?;
        let answer = dispatch::answer(inference, path, hints, body, arrived).await?;
        Ok(answer.map(Body::new))
    }
}

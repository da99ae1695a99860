//! Counts every answer by its path, status, tier and code.

use axum::{
    body::Body,
    extract::{MatchedPath, State},
    http::Request,
    middleware::Next,
    response::Response,
};
use tierbar_core::Code;
use tierbar_inference::{
    headers::TIER,
    metrics::{Metrics, trace},
};

/// Paths without a route: the page's files, and unknown paths.
const OTHER: &str = "other";

pub async fn count(State(metrics): State<Metrics>, request: Request<Body>, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>();
    let path = path.map_or(OTHER, MatchedPath::as_str);
    // The path as documented, even if its last part may have slashes.
    let path = path.replace("{*", "{");
    let response = trace::of_route(path.clone(), next.run(request)).await;
    let tier = response.headers().get(&TIER);
    let tier = tier.and_then(|tier| tier.to_str().ok()).unwrap_or_default();
    let code = response.extensions().get::<Code>();
    let code = code.map_or("", |code| code.as_str());
    metrics.answered(path, response.status().as_u16(), tier, code);
    response
}

//! Every answer's path, status, tier and code, but for those that the indexer of documents has.

use super::{IndexerRequest, Metrics, OfRequest, trace};
use crate::http::headers::TIER;
use axum::{
    body::Body,
    extract::{MatchedPath, State},
    http::Request,
    middleware::Next,
    response::Response,
};
use tierbar_core::Code;

/// Paths without a route: the page's files, and unknown paths.
const OTHER: &str = "other";

pub(crate) async fn count(
    State(metrics): State<Metrics>,
    request: Request<Body>,
    next: Next,
) -> Response {
    if request.extensions().get::<IndexerRequest>().is_some() {
        return trace::of_indexer(next.run(request)).await;
    }
    let path = request.extensions().get::<MatchedPath>();
    let path = path.map_or(OTHER, MatchedPath::as_str);
    // The path as documented, even if its last part may have slashes.
    let path = path.replace("{*", "{");
    let response = trace::of_route(path.clone(), next.run(request)).await;
    let tier = response.headers().get(&TIER);
    let tier = tier.and_then(|tier| tier.to_str().ok()).unwrap_or_default();
    let labels = OfRequest {
        path,
        status: response.status().as_u16(),
        tier: tier.to_owned(),
        code: response
            .extensions()
            .get()
            .map_or("", |code: &Code| code.as_str()),
    };
    metrics.0.requests.get_or_create(&labels).inc();
    response
}

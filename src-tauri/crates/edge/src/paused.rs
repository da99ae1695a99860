//! Adds to a refusal by a pause when the pause ends.

use axum::{
    extract::{Request, State},
    http::header,
    middleware::Next,
    response::{IntoResponse, Response},
};
use jiff::Timestamp;
use std::sync::Arc;
use tierbar_core::{Code, Error};
use tierbar_http::error::Failure;
use tierbar_inference::{
    error::{for_seconds, seconds_of},
    services::Services,
};

/// Outside the queue, which resumes when the pause ends, whenever that is: only clients get a time.
pub async fn add_retry_time(
    State(services): State<Arc<dyn Services>>,
    request: Request,
    next: Next,
) -> Response {
    let response = next.run(request).await;
    let Some(error) = pause_error(&response) else {
        return response;
    };
    let end = services.status().guard.paused_until;
    let now = Timestamp::now().as_millisecond();
    let Some(left) = end.and_then(|end| u64::try_from(end - now).ok()) else {
        return response;
    };
    let rendered = Failure(for_seconds(error, left.div_ceil(1000).max(1))).into_response();
    with_the_rest_of(rendered, response)
}

fn pause_error(response: &Response) -> Option<Error> {
    let error = response.extensions().get::<Error>()?;
    (error.code == Code::Paused && seconds_of(error).is_none()).then(|| error.clone())
}

/// Keeps the other headers of the same error in another form.
fn with_the_rest_of(mut rendered: Response, before: Response) -> Response {
    for (name, value) in before.headers() {
        if name != header::CONTENT_LENGTH {
            rendered.headers_mut().entry(name).or_insert(value.clone());
        }
    }
    rendered
}

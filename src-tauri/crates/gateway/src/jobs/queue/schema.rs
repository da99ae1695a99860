//! The queue's answers as the API's description shows them.

// These types describe; nothing builds them.
#![allow(dead_code)]

use crate::http::schema::QueuedRequest;
use serde_json::Value;
use utoipa::ToSchema;

/// A queued request, and its answer once it has ended.
#[derive(ToSchema)]
pub(super) struct QueuedOutcome {
    #[serde(flatten)]
    request: QueuedRequest,
    /// The answer; null until the request has ended, or without one.
    #[schema(required = true)]
    result: Option<QueuedResult>,
    /// The length of the answer's body.
    #[schema(required = false)]
    result_bytes: u64,
    /// Why the last attempt failed.
    #[schema(value_type = Option<Object>, required = true)]
    error: Value,
}

/// The answer to a queued request.
#[derive(ToSchema)]
struct QueuedResult {
    /// The HTTP status.
    status: u16,
    #[schema(required = true)]
    content_type: Option<String>,
    /// As JSON, or else as text.
    #[schema(required = true)]
    body: Option<Value>,
}

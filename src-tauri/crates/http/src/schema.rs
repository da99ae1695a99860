//! What the descriptions of several routes share: the headers of a request, errors, and a request that is queued.

// These types describe; nothing builds them.
#![allow(dead_code)]

use serde_json::Value;
use std::collections::BTreeMap;
use tierbar_core::{download::Priority, queue::JobStatus};
use utoipa::{IntoParams, ToResponse, ToSchema};

/// Defines a string that is always the same.
#[macro_export]
macro_rules! constant {
    ($name:ident = $text:tt) => {
        #[derive(Debug, utoipa::ToSchema)]
        pub enum $name {
            #[schema(rename = $text)]
            Only,
        }
    };
}

/// The headers of a request for inference.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Header)]
pub struct RequestHeaders {
    /// The tier that answers, if `model` leaves the choice open: `auto`, empty or missing.
    #[param(rename = "x-tierbar-tier", required = false)]
    tier: String,
    /// Whether the request may be queued: `allow` if it cannot be answered now, `only` in any case, `never` not even by its
    /// chain (docs/queue.md).
    #[param(rename = "x-tierbar-queue", required = false, inline)]
    queue: QueueMode,
    /// Of queued requests, those with a higher priority go first.
    #[param(rename = "x-tierbar-priority", required = false, inline)]
    priority: Priority,
    /// When a queued request expires: a duration such as `2h` or a time such as `2026-01-31T06:00:00Z`, at most a week ahead.
    /// Default: one day.
    #[param(rename = "x-tierbar-deadline", required = false)]
    deadline: String,
    /// The most attempts at a queued request. Default: 300.
    #[param(
        rename = "x-tierbar-attempts",
        required = false,
        minimum = 1,
        maximum = 1000
    )]
    attempts: u32,
    /// The URL that is notified when a queued request ends.
    #[param(
        rename = "x-tierbar-webhook",
        required = false,
        format = "uri",
        max_length = 2048
    )]
    webhook: String,
    /// Repeats with the same key return the same queued request.
    #[param(rename = "idempotency-key", required = false, max_length = 255)]
    idempotency_key: String,
}

#[derive(Debug, ToSchema)]
#[schema(rename_all = "lowercase")]
enum QueueMode {
    Allow,
    Only,
    Never,
}

/// An error in OpenAI's form.
#[derive(Debug, ToSchema)]
#[schema(as = Error)]
pub struct ErrorBody {
    #[schema(inline)]
    error: ErrorFields,
}

#[derive(Debug, ToSchema)]
struct ErrorFields {
    /// What happened.
    message: String,
    /// OpenAI's kind of error.
    #[schema(rename = "type")]
    kind: String,
    param: Option<String>,
    /// The stable code; clients may match on it.
    #[schema(examples("context_length_exceeded"))]
    code: String,
    /// What to do.
    #[schema(required = false)]
    hint: String,
    /// The figures of the message, such as `prompt_tokens`.
    #[serde(flatten)]
    figures: BTreeMap<String, Value>,
}

/// The server's state.
#[derive(Debug, ToSchema)]
pub struct Health {
    #[schema(inline)]
    status: HealthStatus,
    version: String,
}

constant!(HealthStatus = "ok");

/// The request was refused or failed; the code is stable.
#[derive(Debug, ToResponse)]
pub struct Refusal(ErrorBody);

/// The request is queued; its answer will be at `url`.
#[derive(Debug, ToResponse)]
#[response(headers(("location" = String, description = "Same as `url`")))]
pub struct Queued(QueuedRequest);

/// A queued request, and where it stands.
#[derive(Debug, ToSchema)]
#[schema(as = QueuedJob)]
pub struct QueuedRequest {
    #[schema(inline)]
    object: QueuedObject,
    /// The path of its state and answer.
    url: String,
    #[serde(flatten)]
    status: JobStatus,
}

constant!(QueuedObject = "queued.request");

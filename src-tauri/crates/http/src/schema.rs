//! What the descriptions of several routes share: the headers of a request, errors, and a request that is queued.

// These types describe; nothing builds them.
#![allow(dead_code)]

use tierbar_core::{download::Priority, queue::JobStatus};
use utoipa::{IntoParams, ToResponse, ToSchema};

/// Names schemas that no type holds: of requests that are relayed as they came, and of answers that are made as JSON. They are written in
/// `docs/openapi.json` itself, which keeps them when it is collected anew.
#[macro_export]
macro_rules! written {
    ($($name:ident),+ $(,)?) => {$(
        #[derive(Debug)]
        pub enum $name {}

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                utoipa::openapi::Ref::from_schema_name(stringify!($name)).into()
            }
        }

        impl utoipa::ToSchema for $name {
            fn name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
        }
    )+};
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

written!(Error, Health);

/// The request was refused or failed; the code is stable.
#[derive(Debug, ToResponse)]
pub struct Refusal(Error);

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

#[derive(Debug, ToSchema)]
enum QueuedObject {
    #[schema(rename = "queued.request")]
    Only,
}

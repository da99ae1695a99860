//! What the descriptions of several routes share: errors, and a request that is queued.

// These types describe; nothing builds them.
#![allow(dead_code)]

use tierbar_core::queue::JobStatus;
use utoipa::{ToResponse, ToSchema};

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

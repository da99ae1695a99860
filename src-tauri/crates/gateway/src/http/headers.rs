//! Headers that several modules read.

use axum::http::HeaderName;

/// The name of a request, which its answer and log lines have. Once the request is in, it always has one.
pub(crate) static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// On a request, the requested tier; on an answer, the tier that answers.
pub(crate) static TIER: HeaderName = HeaderName::from_static("x-tierbar-tier");

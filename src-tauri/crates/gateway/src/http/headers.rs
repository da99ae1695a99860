//! Tierbar's own headers.

use axum::http::HeaderName;

/// On a request, the requested tier; on an answer, the tier that answers.
pub(crate) static TIER: HeaderName = HeaderName::from_static("x-tierbar-tier");

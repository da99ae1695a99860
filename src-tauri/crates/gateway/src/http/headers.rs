//! Tierbar's own headers.

use axum::http::HeaderName;

/// On a request, the tier that is to answer; on an answer, the one that does.
pub(crate) static TIER: HeaderName = HeaderName::from_static("x-tierbar-tier");

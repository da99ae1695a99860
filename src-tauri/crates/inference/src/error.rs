//! How long an error holds, and an error as text.

use serde_json::Value;
use tierbar_core::Error;

/// Adds how long the error holds, which is also sent as `Retry-After`.
pub fn for_seconds(error: Error, seconds: u64) -> Error {
    error.detail(Error::RETRY_AFTER, seconds)
}

/// Returns how long the error holds, if known.
pub fn seconds_of(error: &Error) -> Option<u64> {
    error
        .details
        .get(Error::RETRY_AFTER)
        .and_then(Value::as_u64)
}

/// Returns an error as the last event of a stream.
pub fn last_event(error: &Error) -> String {
    format!("data: {}\n\n", error.openai_body())
}

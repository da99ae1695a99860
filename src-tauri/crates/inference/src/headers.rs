//! Headers that several modules read, and those of requests that Tierbar sends to itself.

use http::{HeaderMap, HeaderName, HeaderValue, header};

/// The name of a request, which its answer and log lines have. Once the request is in, it always has one.
pub static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// On a request, the requested tier; on an answer, the tier that answers.
pub static TIER: HeaderName = HeaderName::from_static("x-tierbar-tier");

/// The headers of a JSON request on behalf of another one: those that identify the client and its page. Left out are those with one of
/// the names and those whose name begins with the prefix.
pub fn on_behalf(headers: &HeaderMap, left_out: &[&str], prefix: &str) -> HeaderMap {
    let is_kept = |name: &HeaderName| {
        let name = name.as_str();
        !left_out.contains(&name) && !name.starts_with(prefix)
    };
    let kept = headers.iter().filter(|(name, _)| is_kept(name));
    let mut kept: HeaderMap = kept
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let json = HeaderValue::from_static("application/json");
    kept.insert(header::CONTENT_TYPE, json);
    kept
}

//! Where the hub is, and which requests carry its token.

use crate::reference::HUB;
use std::sync::Arc;
use tierbar_core::{Code, Error};
use tierbar_fetch::{TokenFor, Url, is_near};
use tierbar_secrets::{Name, Secrets};
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    task::block_in_place,
};

/// Returns the hub's address: `configured` (the value of `HF_ENDPOINT`), or the public hub if it is empty.
///
/// # Errors
/// [`Code::ConfigInvalid`] for an invalid address.
pub fn endpoint(configured: Option<&str>) -> Result<Url, Error> {
    let text = configured
        .map(str::trim)
        .filter(|text| !text.is_empty())
        .unwrap_or(HUB);
    let wrong = |why: &str| {
        // Without the value: it may hold a password.
        Error::new(
            Code::ConfigInvalid,
            format!("HF_ENDPOINT is not a valid address: {why}"),
        )
        .hint(format!(
            "set it to an address such as {HUB}, or leave it unset"
        ))
    };
    let url = Url::parse(text).map_err(|error| wrong(&error.to_string()))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("it contains a name or a password"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("it has a query or a fragment"));
    }
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_near(&url) => Ok(url),
        "http" => Err(wrong("http:// works only on this machine and network")),
        _ => Err(wrong("it does not start with https://")),
    }
}

/// Returns a token source that gives the hub's token only to the hub's own server. It is looked up for each request, so
/// that a change takes effect at once.
pub fn tokens(secrets: Secrets, endpoint: &Url) -> TokenFor {
    let origin = endpoint.origin();
    Arc::new(move |url| {
        if url.origin() != origin {
            return None;
        }
        let found = run_blocking(|| secrets.get(&Name::HuggingFace));
        found.unwrap_or_else(|error| {
            tracing::warn!("the request has no token: {error}");
            None
        })
    })
}

/// Runs work that may block, such as a Keychain prompt, without blocking other tasks.
fn run_blocking<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => block_in_place(work),
        _ => work(),
    }
}

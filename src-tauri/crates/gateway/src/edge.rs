//! The layers before every route: origins, keys, the token and request ids.

pub(crate) mod keys;
pub(crate) mod nearest;
pub(crate) mod openapi;
pub(crate) mod origin;
pub(crate) mod paused;
pub(crate) mod request_id;
pub(crate) mod sessions;
pub(crate) mod sign_in;
pub(crate) mod token;
pub(crate) mod ui;
mod welcome;

use crate::services::Services;
use axum::http::HeaderMap;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use keys::Keys;
use sign_in::SignInCodes;
use std::{
    net::SocketAddr,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};
use tierbar_core::{Code, Error};
use tierbar_store::Store;
use token::Token;

/// Distinguishes our keys from placeholders that clients send where none is needed.
pub(crate) const KEY_PREFIX: &str = "tb-";

/// The state that decides which senders may call.
#[derive(Debug)]
pub(crate) struct Edge {
    pub(crate) services: Arc<dyn Services>,
    pub(crate) keys: Arc<Keys>,
    pub(crate) token: Token,
    pub(crate) codes: SignInCodes,
    /// Where sessions are.
    pub(crate) store: Store,
    /// The listen address.
    pub(crate) address: SocketAddr,
    /// Whether no API key gives access to a path.
    pub(crate) is_owners_path: fn(&str) -> bool,
    /// Whether a path's readers stay connected, and so count like a `POST`.
    pub(crate) is_held_path: fn(&str) -> bool,
    /// Whether a path takes a body of lines.
    pub(crate) takes_lines: fn(&str) -> bool,
    /// Whether a path's body is lines that are parsed one at a time.
    pub(crate) reads_lines: fn(&str, &HeaderMap) -> bool,
}

impl Edge {
    /// Returns whether inference needs an API key or the token.
    pub(crate) fn needs_key(&self) -> bool {
        !self.address.ip().is_loopback() || self.services.config().server.require_keys
    }
}

/// Returns 256 random bits as text for headers and cookies.
///
/// # Errors
/// `Internal` without random numbers from the system.
fn random() -> Result<String, Error> {
    let mut random = [0u8; 32];
    getrandom::fill(&mut random).map_err(|error| {
        let message = format!("no random numbers from the system: {error}");
        Error::new(Code::Internal, message)
    })?;
    Ok(URL_SAFE_NO_PAD.encode(random))
}

/// Returns the milliseconds since 1970.
fn now_ms() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;

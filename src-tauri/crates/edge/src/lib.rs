//! The layers before every route: origins, keys, the token and request ids.

// What only descriptions of the API use is linted with them (src-tauri/crates/openapi).
#![cfg_attr(not(openapi), allow(dead_code, unused_imports))]

pub mod encoding;
pub mod keys;
pub mod nearest;
pub mod openapi;
pub mod origin;
pub mod paused;
pub mod request_id;
pub mod sessions;
pub mod sign_in;
pub mod token;
pub mod ui;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
pub use keys::Keys;
use sign_in::SignInCodes;
use std::{
    net::SocketAddr,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};
use tierbar_core::{Code, Error};
use tierbar_inference::services::Services;
use tierbar_store::Store;
use token::Token;

/// Distinguishes our keys from placeholders that clients send where none is needed.
pub(crate) const KEY_PREFIX: &str = "tb-";

/// The state that decides which senders may call.
#[derive(Debug)]
pub struct Edge {
    pub services: Arc<dyn Services>,
    pub keys: Arc<Keys>,
    pub token: Token,
    pub codes: SignInCodes,
    /// Where sessions are.
    pub store: Store,
    /// The listen address.
    pub address: SocketAddr,
}

impl Edge {
    /// Returns whether inference needs an API key or the token.
    pub fn needs_key(&self) -> bool {
        !self.address.ip().is_loopback() || self.services.config().server.require_keys
    }
}

/// Returns 256 random bits as text for headers and cookies.
///
/// # Errors
/// `Internal` without random numbers from the system.
pub fn random_text() -> Result<String, Error> {
    let mut random = [0u8; 32];
    getrandom::fill(&mut random).map_err(|error| {
        let message = format!("no random numbers from the system: {error}");
        Error::new(Code::Internal, message)
    })?;
    Ok(URL_SAFE_NO_PAD.encode(random))
}

/// Returns the milliseconds since 1970.
pub fn now_ms() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

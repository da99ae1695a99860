//! A key's text: how it is created, what is stored of it, and where a request has it.

use crate::{KEY_PREFIX, origin};
use axum::http::HeaderMap;
use sha2::{Digest, Sha256};
use tierbar_core::Error;

/// 256 random bits.
pub(super) fn make() -> Result<String, Error> {
    Ok(format!("{KEY_PREFIX}{}", crate::random_text()?))
}

/// A fast hash suffices: unlike a password, 256 random bits cannot be guessed.
pub(super) fn hash(key: &str) -> [u8; 32] {
    Sha256::digest(key).into()
}

/// Returns the request's keys or tokens: OpenAI's and Ollama's clients send a bearer, Anthropic's a header of its own.
pub(super) fn credentials(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let anthropic = headers.get("x-api-key").and_then(|key| key.to_str().ok());
    origin::bearer(headers)
        .into_iter()
        .chain(anthropic.map(str::trim))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_long_and_random_with_a_known_prefix() {
        let (one, other) = (make().unwrap(), make().unwrap());
        assert!(
            one.starts_with(KEY_PREFIX) && one.len() == KEY_PREFIX.len() + 43,
            "{one}"
        );
        assert_ne!(one, other);
        assert_ne!(hash(&one), hash(&other));
    }
}

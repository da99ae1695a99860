//! Sessions of browsers: each begins with the token, and ends by the owner or after 14 days without use.
//!
//! A session has two halves. A browser sends the cookie to every port of this machine, where other programs may listen; the
//! other half is kept by the page in its localStorage, which belongs to one port, and is sent as a header.

use super::{now_ms, random};
use axum::{
    Extension,
    http::{HeaderMap, HeaderName, header},
};
use sha2::{Digest, Sha256};
use tierbar_core::{Code, Error};
use tierbar_store::Store;

pub(crate) const COOKIE: &str = "tierbar_session";
/// The half that the page keeps.
pub(crate) static HALF: HeaderName = HeaderName::from_static("x-tierbar-session");
/// How long a session lasts without use.
const IDLE_MS: u64 = 14 * 24 * 3_600_000;
/// How long after its begin a session may do what the token may.
const FRESH_MS: u64 = 10 * 60_000;

/// Marks a request of a browser that has exchanged the token for a session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BySession {
    /// It was begun minutes ago.
    fresh: bool,
}

/// The two halves of a new session.
pub(crate) struct Halves {
    pub(crate) cookie: String,
    pub(crate) page: String,
}

/// Begins a session.
///
/// # Errors
/// `Storage` if it cannot be stored; `Internal` without random numbers.
pub(crate) async fn begin(store: &Store) -> Result<Halves, Error> {
    let halves = Halves {
        cookie: random()?,
        page: random()?,
    };
    let hash = hash(&halves.cookie, &halves.page);
    store.add_session(hash, now_ms()).await?;
    Ok(halves)
}

/// Returns the session of a request that has both of its halves.
pub(crate) async fn find(store: &Store, headers: &HeaderMap) -> Option<BySession> {
    let now = now_ms();
    match store.use_session(hash_of(headers)?, IDLE_MS, now).await {
        Ok(begun) => begun.map(|begun| BySession {
            fresh: now.saturating_sub(begun) <= FRESH_MS,
        }),
        Err(error) => {
            tracing::warn!("a session cannot be looked up: {error}");
            None
        }
    }
}

/// Ends the session of a request.
///
/// # Errors
/// `Storage` if it cannot be removed.
pub(crate) async fn end(store: &Store, headers: &HeaderMap) -> Result<(), Error> {
    match hash_of(headers) {
        Some(hash) => store.end_session(hash).await,
        None => Ok(()),
    }
}

/// Checks that a request has the token itself, or a session that was begun with it minutes ago: what widens access is for
/// the holder of the token, not for a browser that was left signed in.
///
/// # Errors
/// `Forbidden` for an older session.
pub(crate) fn check_fresh(session: Option<Extension<BySession>>, what: &str) -> Result<(), Error> {
    if session.is_none_or(|Extension(session)| session.fresh) {
        return Ok(());
    }
    let message = format!("a browser session older than 10 minutes cannot {what}");
    Err(Error::new(Code::Forbidden, message)
        .hint("use the app or the command line, or run `tierbar sessions end` and sign in again"))
}

fn hash_of(headers: &HeaderMap) -> Option<[u8; 32]> {
    let page = headers.get(&HALF)?.to_str().ok()?;
    Some(hash(cookie(headers)?, page))
}

/// A fast hash suffices: 512 random bits cannot be guessed.
fn hash(cookie: &str, page: &str) -> [u8; 32] {
    Sha256::digest(format!("{cookie}\n{page}")).into()
}

fn cookie(headers: &HeaderMap) -> Option<&str> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|cookies| cookies.to_str().ok())
        .flat_map(|cookies| cookies.split(';'))
        .filter_map(|cookie| cookie.trim().split_once('='))
        .find_map(|(name, value)| (name == COOKIE).then_some(value))
}

#[cfg(test)]
mod tests;

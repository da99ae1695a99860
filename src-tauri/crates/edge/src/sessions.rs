//! Sessions of browsers: each begins with the token, and ends by the owner or after 14 days without use.
//!
//! A session has two halves. A browser sends the cookie to every port of this machine, where other programs may listen; the
//! other half is kept by the page in its localStorage, which belongs to one port, and is sent as a header. A new token ends
//! all sessions, since the hash that is stored includes it.

use super::{Edge, now_ms, random_text, token::Token};
use axum::http::{HeaderMap, HeaderName, header};
use sha2::{Digest, Sha256};
use tierbar_core::{Code, Error};
use tierbar_store::Store;

/// The half that the page keeps.
pub static HALF: HeaderName = HeaderName::from_static("x-tierbar-session");
/// How long a session lasts without use.
pub const IDLE_MS: u64 = 14 * 24 * 3_600_000;
/// How long after its begin a session may do what the token may.
pub const FRESH_MS: u64 = 10 * 60_000;

/// Marks a request of a browser that has exchanged the token for a session.
#[derive(Debug, Clone, Copy)]
pub struct SessionMark {
    /// It was begun minutes ago.
    fresh: bool,
    pub hash: [u8; 32],
}

/// The two halves of a new session.
#[derive(Debug)]
pub struct SessionHalves {
    pub cookie: String,
    pub page: String,
}

/// The cookie's name. It has the port, because browsers send a cookie to all ports, and two hosts would replace each other's.
pub fn cookie_name(edge: &Edge) -> String {
    format!("tierbar_session_{}", edge.address.port())
}

/// Deletes sessions that have ended without use.
pub async fn trim_sessions(store: &Store) {
    if let Err(error) = store.trim_sessions(IDLE_MS, now_ms()).await {
        tracing::warn!("ended sessions cannot be deleted: {error}");
    }
}

/// Begins a session.
///
/// # Errors
/// `Storage` if it cannot be stored; `Internal` without random numbers.
pub async fn begin(edge: &Edge) -> Result<SessionHalves, Error> {
    let halves = SessionHalves {
        cookie: random_text()?,
        page: random_text()?,
    };
    let hash = hash(&edge.token, &halves.cookie, &halves.page);
    let now = now_ms();
    edge.store.add_session(hash, IDLE_MS, now).await?;
    Ok(halves)
}

/// Returns the session of a request that has both of its halves.
pub async fn find(edge: &Edge, headers: &HeaderMap) -> Option<SessionMark> {
    let (hash, now) = (hash_of(edge, headers)?, now_ms());
    match edge.store.use_session(hash, IDLE_MS, now).await {
        Ok(begun) => begun.map(|begun| SessionMark {
            fresh: is_fresh(begun, now),
            hash,
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
pub async fn end(edge: &Edge, headers: &HeaderMap) -> Result<(), Error> {
    match hash_of(edge, headers) {
        Some(hash) => edge.store.end_session(hash).await,
        None => Ok(()),
    }
}

/// Checks that a request has the token itself, or a session that was begun with it minutes ago: what widens access is for
/// the holder of the token, not for a browser that was left signed in.
///
/// # Errors
/// `Forbidden` for an older session.
pub fn check_fresh(session: Option<&SessionMark>, what: &str) -> Result<(), Error> {
    if session.is_none_or(|session| session.fresh) {
        return Ok(());
    }
    let message = format!("a browser session older than 10 minutes cannot {what}");
    Err(Error::new(Code::Forbidden, message)
        .hint("sign in again, or use the app or the command line")
        .detail("sign_in_again", true))
}

/// A session from the future was begun before the clock was set back; its age is unknown.
pub fn is_fresh(begun: u64, now: u64) -> bool {
    now.checked_sub(begun).is_some_and(|age| age <= FRESH_MS)
}

fn hash_of(edge: &Edge, headers: &HeaderMap) -> Option<[u8; 32]> {
    let page = headers.get(&HALF)?.to_str().ok()?;
    let cookie = cookie(headers, &cookie_name(edge))?;
    Some(hash(&edge.token, cookie, page))
}

/// A fast hash suffices: 512 random bits cannot be guessed.
pub fn hash(token: &Token, cookie: &str, page: &str) -> [u8; 32] {
    let token = token.as_str();
    Sha256::digest(format!("{token}\n{cookie}\n{page}")).into()
}

fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|cookies| cookies.to_str().ok())
        .flat_map(|cookies| cookies.split(';'))
        .filter_map(|cookie| cookie.trim().split_once('='))
        .find_map(|(given, value)| (given == name).then_some(value))
}

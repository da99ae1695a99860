//! What stands before every route: who may call, from where, with which key, and under which name.

pub(crate) mod keys;
pub(crate) mod openapi;
pub(crate) mod origin;
pub(crate) mod paused;
pub(crate) mod request_id;
pub(crate) mod token;
pub(crate) mod ui;

use crate::services::Services;
use keys::Keys;
use std::{net::SocketAddr, sync::Arc};
use token::Token;

/// What decides who may call.
#[derive(Debug)]
pub(crate) struct Edge {
    pub(crate) services: Arc<dyn Services>,
    pub(crate) keys: Arc<Keys>,
    pub(crate) token: Token,
    /// The address that is listened on.
    pub(crate) address: SocketAddr,
    /// Paths that no API key opens.
    pub(crate) is_owners_path: fn(&str) -> bool,
    /// Paths whose readers stay, and so have a place like those who post.
    pub(crate) is_held_path: fn(&str) -> bool,
}

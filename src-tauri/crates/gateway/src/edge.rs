//! What stands before every route: who may call, from where, with which key, and under which name.

pub(crate) mod keys;
pub(crate) mod openapi;
pub(crate) mod origin;
pub(crate) mod paused;
pub(crate) mod request_id;
pub(crate) mod token;
pub(crate) mod ui;

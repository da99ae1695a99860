//! Who may call, and where.

mod keys_admit;
mod nearest;
mod openapi;
mod origin;
mod paused;
mod reach;
mod routes;
pub(super) mod sessions;
mod welcome;

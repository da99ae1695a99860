//! Who may call, and where.

mod keys_admit;
mod nearest;
mod openapi;
mod origin;
mod paused;
mod routes;
mod sessions;
mod welcome;

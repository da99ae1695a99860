//! What the whole API does, crate by crate, over a worker that is a real HTTP server.

mod dialects;
mod edge;
mod inference;
mod jobs;

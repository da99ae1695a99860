//! The sandbox with real commands that try to get out of it, and real ones that only work.

#![allow(clippy::unwrap_used, reason = "a test fails by its panic")]

mod injection;
mod platform;
mod sandbox;
mod whole;

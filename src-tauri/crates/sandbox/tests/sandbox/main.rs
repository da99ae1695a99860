//! The sandbox with real commands that try to get out of it, and real ones that only work; the process guard with programs that behave
//! badly.

#![allow(clippy::unwrap_used, reason = "a test fails by its panic")]

mod commands;
mod exchanged;
mod network;
mod place;
mod platform;
mod process_guard;
mod user;

use std::path::Path;

/// The program that runs commands.
pub(crate) fn launcher() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_tierbar-sandbox"))
}

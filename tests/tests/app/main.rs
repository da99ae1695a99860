//! The real menu-bar app on a display of its own.

// A Mac lends a test no display and no tray of its own.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by its panic")]

mod documents;
mod hostile;
mod settings;
mod shell;

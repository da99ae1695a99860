//! The agent with real files, commands in the sandbox and texts that give orders; MCP servers of other programs.

#![allow(clippy::unwrap_used, reason = "a test fails by its panic")]

mod injection;
mod mcp;
#[path = "../../../sandbox/tests/sandbox/place.rs"]
mod place;
mod whole;

use std::path::Path;

/// The program that runs commands, which Cargo builds beside those of this crate.
pub(crate) fn launcher() -> &'static Path {
    static LAUNCHER: std::sync::LazyLock<std::path::PathBuf> = std::sync::LazyLock::new(|| {
        Path::new(env!("CARGO_BIN_EXE_mcp-test-server")).with_file_name("tierbar-sandbox")
    });
    &LAUNCHER
}

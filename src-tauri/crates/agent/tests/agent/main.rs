//! The agent with real files, commands in the sandbox and texts that give orders; MCP servers of other programs.

#![allow(clippy::unwrap_used, reason = "a test fails by its panic")]

mod injection;
mod mcp;
#[path = "../../../sandbox/tests/sandbox/place.rs"]
mod place;
mod whole;

use std::{
    path::{Path, PathBuf},
    sync::LazyLock,
};

/// The program that runs commands, which `cargo quick-build` makes.
pub(crate) fn launcher() -> &'static Path {
    static LAUNCHER: LazyLock<PathBuf> = LazyLock::new(|| {
        let beside = Path::new(env!("CARGO_BIN_EXE_mcp-test-server"));
        let launcher = beside.with_file_name("tierbar-sandbox");
        assert!(launcher.is_file(), "run `cargo quick-build` first");
        launcher
    });
    &LAUNCHER
}

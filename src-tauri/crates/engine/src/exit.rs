//! Ends the worker's process.

use crate::platform;
use std::{fs, path::Path};

/// Removes the socket and ends the process at once, without running destructors.
pub(crate) fn now(socket: &Path) -> ! {
    let _absent = fs::remove_file(socket);
    platform::exit_now(0)
}

//! What differs between systems: whether there is a keychain.

#[cfg(not(target_os = "macos"))]
mod linux;
#[cfg(target_os = "macos")]
mod macos;

#[cfg(not(target_os = "macos"))]
use linux as system;
#[cfg(target_os = "macos")]
use macos as system;

pub(crate) use system::keychain;

/// Open neither a link nor wait for a pipe's writer.
pub(crate) const PLAIN_FILE: i32 = libc::O_NOFOLLOW | libc::O_NONBLOCK;

//! What only Linux has: processes that die with their parent, and orphans that come to it.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;

#[cfg(target_os = "linux")]
pub(crate) use linux::{adopt, die_with_parent, kill_adopted};
#[cfg(target_os = "macos")]
pub(crate) use macos::{adopt, die_with_parent, kill_adopted};

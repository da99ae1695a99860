//! How a path is opened without following links, and how an open file's path is found.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(target_os = "macos")]
use macos as system;

pub(crate) use system::{LOCATE, PRIVACY, flags, modified, open, real_path};

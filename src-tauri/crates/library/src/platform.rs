//! What differs between systems: the Trash, and how folders are watched.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;

#[cfg(target_os = "linux")]
use linux as os;
#[cfg(target_os = "macos")]
use macos as os;

pub(crate) use os::{WATCHES_TREES, flags, to_trash};

//! What differs between systems: the folder for application data, and which program listens on a port.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;

#[cfg(target_os = "linux")]
pub(crate) use linux::{data_folder, listener};
#[cfg(target_os = "macos")]
pub(crate) use macos::{data_folder, listener};

/// A program that listens on a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listener {
    pub(crate) pid: u32,
    pub(crate) command: String,
}

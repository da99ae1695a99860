//! How a file gets onto the disk, and how it is kept out of the page cache: gigabytes that are read once must not push
//! out a loaded model. And what a system puts between a program and its network.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;

#[cfg(target_os = "linux")]
pub(crate) use linux::{LOCAL_NETWORK, drop_cached, spare_cache, sync};
#[cfg(target_os = "macos")]
pub(crate) use macos::{LOCAL_NETWORK, drop_cached, spare_cache, sync};

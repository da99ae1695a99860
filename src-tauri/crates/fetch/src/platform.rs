//! How a file gets onto the disk, and how it is kept out of the page cache: gigabytes that are read once must not push
//! out a loaded model.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;

#[cfg(target_os = "linux")]
pub(crate) use linux::{drop_cached, spare_cache, sync};
#[cfg(target_os = "macos")]
pub(crate) use macos::{drop_cached, spare_cache, sync};

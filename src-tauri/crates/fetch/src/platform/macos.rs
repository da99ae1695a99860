//! macOS: `F_NOCACHE` on the descriptor keeps its reads and writes out of the unified buffer cache.

use rustix::{
    fs::{fcntl_nocache, fsync},
    io::Errno,
};
use std::{fs::File, io};

/// Without the user's permission, servers of the local network are as if they were gone (Apple's TN3179).
pub(crate) const LOCAL_NETWORK: Option<&str> =
    Some("allow Tierbar in System Settings → Privacy & Security → Local Network");

/// Returns once a file's bytes and length, or a folder's names, outlive a power cut.
///
/// The standard library asks for `F_FULLFSYNC`, which network volumes and some external disks do not support:
/// they do what they can.
pub(crate) fn sync(file: &File) -> io::Result<()> {
    file.sync_all()
        .or_else(|error| match Errno::from_io_error(&error) {
            Some(Errno::NOTSUP | Errno::OPNOTSUPP | Errno::NOTTY | Errno::INVAL) => {
                Ok(fsync(file)?)
            }
            _ => Err(error),
        })
}

pub(crate) fn spare_cache(file: &File) {
    // Advice: a file system that takes none keeps its cache.
    let _ = fcntl_nocache(file, true);
}

pub(crate) fn drop_cached(_file: &File, _start: u64, _end: u64) {}

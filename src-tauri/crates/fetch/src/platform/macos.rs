//! macOS: `F_NOCACHE` on the descriptor keeps its reads and writes out of the unified buffer cache.

use rustix::fs::fcntl_nocache;
use std::fs::File;

pub(crate) fn spare_cache(file: &File) {
    // Advice: a file system that takes none keeps its cache.
    let _ = fcntl_nocache(file, true);
}

pub(crate) fn drop_cached(_file: &File, _start: u64, _end: u64) {}

//! Linux: pages are dropped once they lie on the disk.

use rustix::fs::{Advice, fadvise};
use std::{fs::File, io, num::NonZeroU64};

/// Returns once a file's bytes and length, or a folder's names, outlive a power cut.
pub(crate) fn sync(file: &File) -> io::Result<()> {
    file.sync_data()
}

pub(crate) fn spare_cache(_file: &File) {}

/// Drops the pages of `start..end`, which must have been synced: dirty ones stay.
pub(crate) fn drop_cached(file: &File, start: u64, end: u64) {
    if let Some(length) = NonZeroU64::new(end.saturating_sub(start)) {
        // Advice: a file system that takes none keeps its cache.
        let _ = fadvise(file, start, Some(length), Advice::DontNeed);
    }
}

//! Linux: pages are dropped once they lie on the disk.

use rustix::fs::{Advice, fadvise};
use std::{fs::File, io, num::NonZeroU64};

/// Nothing stands between a program and its own network.
pub(crate) const LOCAL_NETWORK: Option<&str> = None;

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

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::{Errno, ReadWriteFlags, preadv2};
    use std::{io::IoSliceMut, os::unix::fs::FileExt as _};
    use tierbar_skip::skip;

    /// A read that takes nothing but what is cached.
    fn cached(file: &File, at: u64) -> rustix::io::Result<usize> {
        let mut page = [0; 4096];
        let pages = &mut [IoSliceMut::new(&mut page)];
        preadv2(file, pages, at, ReadWriteFlags::NOWAIT)
    }

    #[test]
    fn dropped_pages_leave_the_page_cache() {
        // Beside the test itself, on a disk: a folder for temporary files is often in memory.
        let test = std::env::current_exe().unwrap();
        let file = tempfile::tempfile_in(test.parent().unwrap()).unwrap();
        let last = (2 << 20) - 4096;
        file.write_all_at(&[7; 2 << 20], 0).unwrap();
        sync(&file).unwrap();
        if cached(&file, last) == Err(Errno::OPNOTSUPP) {
            return skip("this file system cannot say what is cached");
        }
        assert_eq!(cached(&file, last), Ok(4096));
        drop_cached(&file, 0, 2 << 20);
        assert_eq!(cached(&file, last), Err(Errno::AGAIN));
        // Hashing reads all of it.
        crate::sha256_of(&file, |_| true).unwrap();
        assert_eq!(cached(&file, last), Err(Errno::AGAIN));
    }
}

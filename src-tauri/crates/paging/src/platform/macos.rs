//! macOS: `F_NOCACHE`, and fresh memory in place of pages that go.

use super::WeightFile;
use std::{fs::File, io, os::fd::AsRawFd, path::Path};

#[cfg(target_os = "macos")]
use libc::F_NOCACHE;
/// Refused by Linux, as by a file system without it.
#[cfg(not(target_os = "macos"))]
const F_NOCACHE: libc::c_int = 48;

/// `F_NOCACHE` has the system read past its page cache where it holds nothing of the file (`fcntl(2)`).
pub(crate) fn open(path: &Path) -> io::Result<WeightFile> {
    let file = File::open(path)?;
    // SAFETY: a flag of an open file.
    let direct = unsafe { libc::fcntl(file.as_raw_fd(), F_NOCACHE, 1) } == 0;
    Ok(WeightFile {
        file,
        direct: direct.into(),
    })
}

/// `F_NOCACHE` refuses no read.
pub(super) fn read_through_the_cache(_: &File) -> io::Result<()> {
    Ok(())
}

/// macOS has no huge pages for such memory.
pub(super) fn keep_pages_small(_: *mut libc::c_void, _: usize) {}

/// `mach_vm_remap` shares pages and does not move them.
pub(super) unsafe fn move_pages(_: usize, _: usize, _: usize) -> bool {
    false
}

pub(crate) fn most_moved() -> usize {
    0
}

/// `MADV_DONTNEED` is a hint there; a new mapping over the old one frees its pages at once.
pub(super) unsafe fn drop_pages(at: usize, bytes: usize) {
    // SAFETY: as the caller says. If it fails, the pages stay, which is correct and costs memory.
    let _kept = unsafe { super::lay_memory(at, bytes) };
}

/// `F_NOCACHE` has been refused, and there is no other way to have the page cache let go.
pub(super) fn forget(_: &File, _: u64, _: usize) {}

//! Linux: `O_DIRECT`, and pages moved by `mremap`.

use super::WeightFile;
use rustix::fs::{Advice, OFlags, fadvise, fcntl_getfl, fcntl_setfl};
use std::{
    fs::{File, OpenOptions},
    io,
    num::NonZeroU64,
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

/// Some file systems have no direct reads (tmpfs before Linux 6.5); what they have is in memory.
pub(crate) fn open(path: &Path) -> io::Result<WeightFile> {
    let direct = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECT)
        .open(path);
    let (file, direct) = match direct {
        Ok(file) => (file, true),
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => (File::open(path)?, false),
        Err(error) => return Err(error),
    };
    Ok(WeightFile {
        file,
        direct: direct.into(),
    })
}

/// A huge page would come whole for one byte of an expert, beyond the budget.
pub(super) fn keep_pages_small(base: *mut libc::c_void, bytes: usize) {
    // SAFETY: the caller's own memory; a kernel without huge pages refuses it, to the same effect.
    unsafe { libc::madvise(base, bytes, libc::MADV_NOHUGEPAGE) };
}

/// `MREMAP_DONTUNMAP` (Linux 5.7) leaves an empty mapping where the pages were.
pub(super) unsafe fn move_pages(from: usize, to: usize, bytes: usize) -> bool {
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP;
    // SAFETY: as the caller says.
    let moved = unsafe {
        libc::mremap(
            from as *mut libc::c_void,
            bytes,
            bytes,
            flags,
            to as *mut libc::c_void,
        )
    };
    if moved != libc::MAP_FAILED {
        return true;
    }
    // The kernel may have unmapped the target before it failed. If this fails too, a read of it will say so.
    // SAFETY: as the caller says.
    let _unmapped = unsafe { super::lay_memory(to, bytes) };
    false
}

/// Returns how many runs of pages may be moved to: each leaves up to two more mappings, of which a process has a limited
/// number, and others need some.
pub(crate) fn most_moved() -> usize {
    let limit = std::fs::read_to_string("/proc/sys/vm/max_map_count");
    let limit: Option<usize> = limit.ok().and_then(|text| text.trim().parse().ok());
    limit.unwrap_or(65_530) / 3
}

pub(super) unsafe fn drop_pages(at: usize, bytes: usize) {
    // SAFETY: as the caller says.
    unsafe { libc::madvise(at as *mut libc::c_void, bytes, libc::MADV_DONTNEED) };
}

/// Has further reads go through the page cache.
pub(super) fn read_through_the_cache(file: &File) -> io::Result<()> {
    Ok(fcntl_setfl(file, fcntl_getfl(file)? - OFlags::DIRECT)?)
}

/// Lets the page cache go of what was read through it.
pub(super) fn forget(file: &File, offset: u64, bytes: usize) {
    if let Some(bytes) = NonZeroU64::new(bytes as u64) {
        let _kept = fadvise(file, offset, Some(bytes), Advice::DontNeed);
    }
}

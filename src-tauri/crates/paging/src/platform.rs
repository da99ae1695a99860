//! Memory over a mapping, its pages, and reads past the page cache.
//!
//! Linux moves pages from an expert that goes to one that comes, so that neither the kernel's zeroing nor its allocator is
//! in the way of a read. macOS has no such call for parts of a region: there, pages are given back and faulted in anew.

#![expect(unsafe_code, reason = "memory is laid over a file's mapping")]

#[cfg(not(any(target_os = "macos", feature = "as-on-macos")))]
mod linux;
#[cfg(any(target_os = "macos", feature = "as-on-macos"))]
mod macos;
#[cfg(test)]
pub(crate) mod testing;

#[cfg(not(any(target_os = "macos", feature = "as-on-macos")))]
use linux as system;
#[cfg(any(target_os = "macos", feature = "as-on-macos"))]
use macos as system;

use std::{
    fs::File,
    io,
    ops::Range,
    os::fd::AsRawFd,
    sync::atomic::{AtomicBool, Ordering},
};

pub(crate) use system::{most_moved, open};

/// Returns the size of a page of memory.
pub fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

/// An open file, and whether reads of it pass the page cache by.
#[derive(Debug)]
pub(crate) struct WeightFile {
    pub(crate) file: File,
    pub(crate) direct: AtomicBool,
}

/// Anonymous memory over a run of a file's mapping, at the same addresses. Places in it are bytes from the file's start.
#[derive(Debug)]
pub struct MemoryArea {
    pub(crate) file: usize,
    pub(crate) bytes: Range<u64>,
    base: usize,
}

impl MemoryArea {
    /// Lays empty memory over a run of the mapping of the model's `file`, which lies at the address `base`. Both ends are
    /// multiples of a page.
    ///
    /// # Errors
    /// The system's, if it has no such memory.
    ///
    /// # Safety
    /// These pages must be mapped. While the value lives, no other code may map, unmap or write them, and readers must
    /// expect that they change: they are all zero at first.
    pub unsafe fn lay_over(file: usize, bytes: Range<u64>, base: usize) -> io::Result<Self> {
        // SAFETY: as the caller says; a fixed private mapping without a file.
        unsafe { lay_memory(base, (bytes.end - bytes.start) as usize)? };
        Ok(Self { file, bytes, base })
    }

    /// The address of a run of it; `None` if it does not lie within.
    fn address(&self, run: &Range<u64>) -> Option<(usize, usize)> {
        let within =
            self.bytes.start <= run.start && run.start <= run.end && run.end <= self.bytes.end;
        within.then(|| {
            let ahead = run.start - self.bytes.start;
            (self.base + ahead as usize, (run.end - run.start) as usize)
        })
    }

    /// Reads this run of the file into its place, or what the file has of it, and returns how many bytes that were.
    pub(crate) fn fill(&self, from: &WeightFile, run: &Range<u64>) -> io::Result<u64> {
        let (address, length) = self.address(run).ok_or(io::ErrorKind::InvalidInput)?;
        let (mut done, mut retried) = (0, false);
        while done < length {
            let place = i64::try_from(run.start + done as u64).map_err(io::Error::other)?;
            let to = (address + done) as *mut libc::c_void;
            // SAFETY: within this memory, which is writable; no reference of Rust's points into it.
            let read = unsafe { libc::pread(from.file.as_raw_fd(), to, length - done, place) };
            match usize::try_from(read) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(_) => {
                    let error = io::Error::last_os_error();
                    // Some file systems take the flag, and no such read.
                    let refused = error.kind() == io::ErrorKind::InvalidInput;
                    if refused && !retried {
                        retried = true;
                        from.direct.store(false, Ordering::Relaxed);
                        system::read_through_the_cache(&from.file)?;
                    } else if error.kind() != io::ErrorKind::Interrupted {
                        return Err(error);
                    }
                }
            }
        }
        if !from.direct.load(Ordering::Relaxed) {
            system::forget(&from.file, run.start, done);
        }
        Ok(done as u64)
    }

    /// Moves the pages of a run to another of the same length, in this or another area. If the system cannot, the pages
    /// are dropped instead, and `false` comes back.
    pub(crate) fn move_pages(&self, from: &Range<u64>, target: &Self, to: &Range<u64>) -> bool {
        let (Some((source, length)), Some((place, room))) =
            (self.address(from), target.address(to))
        else {
            return false;
        };
        let apart = source + length <= place || place + room <= source;
        // SAFETY: both are within such memory and apart; their contents are no longer needed.
        let moved = length == room && apart && unsafe { system::move_pages(source, place, length) };
        if !moved {
            self.drop_pages(from);
        }
        moved
    }

    /// Gives the pages of a run back to the system. They are zero when they are next read.
    pub(crate) fn drop_pages(&self, run: &Range<u64>) {
        if let Some((address, length)) = self.address(run)
            && length > 0
        {
            // SAFETY: within this memory; its contents are no longer needed.
            unsafe { system::drop_pages(address, length) };
        }
    }

    /// Asks the system never to write these pages to its swap. Without the permission, it may.
    pub(crate) fn lock(&self, run: &Range<u64>) -> bool {
        self.address(run).is_some_and(|(address, length)| {
            // SAFETY: within this memory.
            unsafe { libc::mlock(address as *const libc::c_void, length) == 0 }
        })
    }
}

/// Linux reads no more for one request than a disk's `read_ahead_kb`, which is 128 KiB by default (`mm/readahead.c`,
/// `force_page_cache_ra`).
const MOST_ADVISED: usize = 128 << 10;

/// A file's mapping, from its first byte on. Places in it are bytes from the file's start.
#[derive(Debug, Clone, Copy)]
pub struct MappedFile {
    base: usize,
    bytes: u64,
}

impl MappedFile {
    /// # Safety
    /// As many bytes must be mapped at `base`, a multiple of a page, as long as the value is used.
    pub const unsafe fn new(base: usize, bytes: u64) -> Self {
        Self { base, bytes }
    }

    /// The address of a run of whole pages, the last one perhaps beyond the file's end.
    fn address(&self, run: &Range<u64>) -> Option<(usize, usize)> {
        let within = run.start < run.end && run.end <= self.bytes.next_multiple_of(page_bytes());
        within.then(|| {
            (
                self.base + run.start as usize,
                (run.end - run.start) as usize,
            )
        })
    }

    /// Has the system read what is missing and no more: where a disk's read-ahead is large, each fault would bring experts that
    /// were not chosen.
    pub(crate) fn read_exactly(&self) {
        if let Some((address, length)) = self.address(&(0..self.bytes)) {
            // SAFETY: advice about mapped memory; nothing of it changes.
            unsafe { libc::madvise(address as *mut libc::c_void, length, libc::MADV_RANDOM) };
        }
    }

    /// Asks the system to read a run into its file cache, and returns at once.
    pub(crate) fn read_ahead(&self, run: &Range<u64>) {
        let Some((address, length)) = self.address(run) else {
            return;
        };
        for ahead in (0..length).step_by(MOST_ADVISED) {
            let at = (address + ahead) as *mut libc::c_void;
            let bytes = MOST_ADVISED.min(length - ahead);
            // SAFETY: advice about mapped memory; nothing of it changes.
            unsafe { libc::madvise(at, bytes, libc::MADV_WILLNEED) };
        }
    }

    /// Returns how many bytes of a run are not in memory, as far as the system says.
    pub(crate) fn absent_bytes(&self, run: &Range<u64>) -> u64 {
        let Some((address, length)) = self.address(run) else {
            return 0;
        };
        let page = page_bytes();
        let count = (run.end - run.start).div_ceil(page);
        let mut pages = vec![0_u8; usize::try_from(count).unwrap_or(0)];
        // SAFETY: mapped memory, and a byte for each of its pages.
        let looked = unsafe {
            libc::mincore(
                address as *mut libc::c_void,
                length,
                pages.as_mut_ptr().cast(),
            )
        };
        if looked != 0 {
            return 0;
        }
        pages.iter().filter(|&&state| state & 1 == 0).count() as u64 * page
    }

    /// Keeps a run in memory. Without the permission, it stays as it is.
    pub(crate) fn lock(&self, run: &Range<u64>) -> bool {
        self.address(run).is_some_and(|(address, length)| {
            // SAFETY: mapped memory.
            unsafe { libc::mlock(address as *const libc::c_void, length) == 0 }
        })
    }
}

/// Maps empty memory at these addresses, in place of what is there.
///
/// # Safety
/// As [`MemoryArea::lay_over`].
unsafe fn lay_memory(base: usize, bytes: usize) -> io::Result<()> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_FIXED | libc::MAP_NORESERVE;
    let at = base as *mut libc::c_void;
    // SAFETY: as the caller says.
    let laid = unsafe { libc::mmap(at, bytes, protection, flags, -1, 0) };
    if laid == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    system::keep_pages_small(laid, bytes);
    Ok(())
}

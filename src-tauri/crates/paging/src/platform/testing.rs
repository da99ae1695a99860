//! A file's mapping, as loading a model makes one.

use super::MemoryArea;
use crate::layout::Layout;
use std::{fs::File, os::fd::AsRawFd, path::Path};

/// A mapping that is never unmapped.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mapping {
    pub(crate) base: usize,
    bytes: usize,
}

impl Mapping {
    pub(crate) fn of(path: &Path) -> Self {
        let file = File::open(path).unwrap();
        let bytes = usize::try_from(file.metadata().unwrap().len()).unwrap();
        let (read, shared) = (libc::PROT_READ, libc::MAP_SHARED);
        // SAFETY: a new mapping of a file that no test writes while it is read.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                read,
                shared,
                file.as_raw_fd(),
                0,
            )
        };
        assert_ne!(base, libc::MAP_FAILED);
        Self {
            base: base as usize,
            bytes,
        }
    }

    pub(crate) fn mapped(self) -> super::MappedFile {
        // SAFETY: it is never unmapped.
        unsafe { super::MappedFile::new(self.base, self.bytes as u64) }
    }

    /// What lies at the place of a byte range of the file now.
    pub(crate) fn read(self, start: u64, bytes: u64) -> Vec<u8> {
        let (start, bytes) = (
            usize::try_from(start).unwrap(),
            usize::try_from(bytes).unwrap(),
        );
        assert!(start + bytes <= self.bytes);
        // SAFETY: within the mapping; nothing writes there while a test looks.
        unsafe { std::slice::from_raw_parts((self.base + start) as *const u8, bytes) }.to_vec()
    }
}

impl Mapping {
    /// How much of it is in memory.
    pub(crate) fn resident_bytes(self) -> u64 {
        let page = usize::try_from(super::page_bytes()).unwrap();
        let mut pages = vec![0u8; self.bytes.div_ceil(page)];
        // SAFETY: the mapping, and a byte for each of its pages.
        let looked = unsafe {
            libc::mincore(
                self.base as *mut libc::c_void,
                self.bytes,
                pages.as_mut_ptr().cast(),
            )
        };
        assert_eq!(looked, 0);
        let resident = pages.iter().filter(|&&page| page & 1 == 1).count();
        (resident * page) as u64
    }
}

/// Drops the unmapped pages of a file from the file cache.
pub(crate) fn forget_all(file: &File) {
    let descriptor = file.as_raw_fd();
    #[cfg(target_os = "linux")]
    // SAFETY: advice on an open file.
    let refused = unsafe { libc::posix_fadvise(descriptor, 0, 0, libc::POSIX_FADV_DONTNEED) } != 0;
    #[cfg(target_os = "macos")]
    let refused = {
        let bytes = usize::try_from(file.metadata().unwrap().len()).unwrap();
        // SAFETY: a mapping of its own, which nothing reads.
        unsafe {
            let nowhere = std::ptr::null_mut();
            let at = libc::mmap(
                nowhere,
                bytes,
                libc::PROT_READ,
                libc::MAP_SHARED,
                descriptor,
                0,
            );
            libc::msync(at, bytes, libc::MS_INVALIDATE) != 0 || libc::munmap(at, bytes) != 0
        }
    };
    assert!(!refused);
}

/// Lays memory over all areas of a file.
pub(crate) fn lay_over(layout: &Layout, mapping: Mapping) -> Vec<MemoryArea> {
    let areas = layout.areas(0).into_iter();
    areas
        .map(|bytes| {
            let base = mapping.base + usize::try_from(bytes.start).unwrap();
            // SAFETY: within the mapping, which is never unmapped, and which tests read between needs alone.
            unsafe { MemoryArea::lay_over(0, bytes, base) }.unwrap()
        })
        .collect()
}

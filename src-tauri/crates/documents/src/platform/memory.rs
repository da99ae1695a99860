//! Memory that is counted, since macOS keeps no limit of a process's address space.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicU64, Ordering},
};

/// What may be allocated in all; nothing is limited before a limit is set.
static LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);
static USED: AtomicU64 = AtomicU64::new(0);

/// The allocator of `tierbar-extract`: beyond its limit an allocation fails, which ends the process.
#[derive(Debug, Default, Clone, Copy)]
pub struct CountingAllocator;

pub(super) fn limit(bytes: u64) {
    LIMIT.store(bytes, Ordering::Relaxed);
}

// SAFETY: every call goes on to the system's allocator with the same arguments, or returns null, which is how an allocator refuses.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let size = layout.size() as u64;
        if USED.fetch_add(size, Ordering::Relaxed) + size > LIMIT.load(Ordering::Relaxed) {
            USED.fetch_sub(size, Ordering::Relaxed);
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's layout is passed on as it is.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: the pointer came from the system's allocator with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

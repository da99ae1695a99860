//! Objects of llama.cpp and of our shim, which are freed when their owner is dropped.

use std::ptr::NonNull;

#[derive(Debug)]
pub(super) struct OwnedPointer<T> {
    raw: NonNull<T>,
    free: unsafe extern "C" fn(*mut T),
}

// SAFETY: no object here is bound to a thread; `&mut self` of its owner guards what changes it.
unsafe impl<T> Send for OwnedPointer<T> {}

impl<T> OwnedPointer<T> {
    /// Takes over what a call returned; `None` for null.
    ///
    /// # Safety
    /// The object is live, has no other owner, and is freed by `free`.
    pub(super) unsafe fn new(raw: *mut T, free: unsafe extern "C" fn(*mut T)) -> Option<Self> {
        NonNull::new(raw).map(|raw| Self { raw, free })
    }

    pub(super) fn as_ptr(&self) -> *mut T {
        self.raw.as_ptr()
    }
}

impl<T> Drop for OwnedPointer<T> {
    fn drop(&mut self) {
        // SAFETY: as `new` says; freed once.
        unsafe { (self.free)(self.raw.as_ptr()) }
    }
}

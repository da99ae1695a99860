//! The threads that compute.

use crate::turns::Turns;
use llama_cpp_sys_2 as sys;
use std::{ptr::NonNull, sync::Arc};
use tierbar_core::{Code, Error};

/// Compute threads, shared by contexts that compute in turn: two sets of waiting threads would slow each other down.
#[derive(Debug)]
pub(super) struct Threadpool(
    pub(super) NonNull<sys::ggml_threadpool>,
    pub(super) Arc<Turns>,
);

// SAFETY: ggml's pool is bound to no thread; one context at a time gives it work.
unsafe impl Send for Threadpool {}

// SAFETY: as above.
unsafe impl Sync for Threadpool {}

impl Threadpool {
    /// Without a pool, ggml starts new threads for every graph.
    pub(super) fn new(threads: u16) -> Result<Arc<Self>, Error> {
        // SAFETY: a plain struct of defaults.
        let raw = unsafe {
            let mut params = sys::ggml_threadpool_params_default(i32::from(threads));
            sys::ggml_threadpool_new(&raw mut params)
        };
        let pool = NonNull::new(raw).map(|raw| Arc::new(Self(raw, Arc::default())));
        pool.ok_or_else(|| {
            let message = format!("{threads} threads could not be started");
            Error::new(Code::TierFailed, message)
        })
    }
}

impl Drop for Threadpool {
    fn drop(&mut self) {
        // SAFETY: freed once, and used by no context any more.
        unsafe { sys::ggml_threadpool_free(self.0.as_ptr()) }
    }
}

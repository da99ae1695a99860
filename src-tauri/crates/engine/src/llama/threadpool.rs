//! The threads that compute.

use super::owned_pointer::OwnedPointer;
use crate::turns::Turns;
use llama_cpp_sys_2 as sys;
use std::sync::Arc;
use tierbar_core::{Code, Error};

/// Compute threads, shared by contexts that compute in turn: two sets of waiting threads would slow each other down.
#[derive(Debug)]
pub(super) struct Threadpool(
    pub(super) OwnedPointer<sys::ggml_threadpool>,
    pub(super) Arc<Turns>,
);

// SAFETY: one context at a time gives it work.
unsafe impl Sync for Threadpool {}

impl Threadpool {
    /// Without a pool, ggml starts new threads for every graph.
    pub(super) fn new(threads: u16) -> Result<Arc<Self>, Error> {
        // SAFETY: a plain struct of defaults; the pool is ours, and is freed when no context uses it any more.
        let raw = unsafe {
            let mut params = sys::ggml_threadpool_params_default(i32::from(threads));
            let raw = sys::ggml_threadpool_new(&raw mut params);
            OwnedPointer::new(raw, sys::ggml_threadpool_free)
        };
        let pool = raw.map(|raw| Arc::new(Self(raw, Arc::default())));
        pool.ok_or_else(|| {
            let message = format!("{threads} threads could not be started");
            Error::new(Code::TierFailed, message)
        })
    }
}

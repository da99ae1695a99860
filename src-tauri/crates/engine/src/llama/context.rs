//! A context: the KV cache of one sequence, the compute threads, and the evaluation of tokens.

use super::{Token, model::Model};
use llama_cpp_sys_2 as sys;
use std::{
    ffi::c_void,
    ptr::{self, NonNull},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicPtr, Ordering},
    },
};
use tierbar_core::{Code, Error, budget::MICRO_BATCH, config::KvCache, worker::Memory};

/// The one sequence of the context.
const SEQUENCE: sys::llama_seq_id = 0;

/// How a context is made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ContextParams {
    pub(crate) tokens: u32,
    pub(crate) kv_cache: KvCache,
    pub(crate) threads: u16,
    /// Whether the GPU also computes large batches of layers that the CPU holds. It copies their weights for that, into
    /// buffers that no plan counts.
    pub(crate) gpu_takes_over: bool,
}

/// How an evaluation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decoded {
    Done,
    /// The cancel flag was seen. What had been evaluated before it stays in the cache.
    Aborted,
}

#[derive(Debug)]
pub(crate) struct Context {
    raw: NonNull<sys::llama_context>,
    threadpool: NonNull<sys::ggml_threadpool>,
    /// The flag that the abort callback reads: null, or the running job's.
    abort: Box<AtomicPtr<AtomicBool>>,
    model: Arc<Model>,
}

// SAFETY: a context may be used from any thread, one at a time; `&mut self` guards what changes it.
unsafe impl Send for Context {}

impl Context {
    pub(crate) fn new(model: Arc<Model>, params: ContextParams) -> Result<Self, Error> {
        let abort = Box::new(AtomicPtr::new(ptr::null_mut()));
        // SAFETY: a plain struct of defaults.
        let mut raw_params = unsafe { sys::llama_context_default_params() };
        raw_params.n_ctx = params.tokens;
        // One micro-batch per evaluation: a cancel that only shows between evaluations (Metal) is seen soon.
        raw_params.n_batch = MICRO_BATCH;
        raw_params.n_ubatch = MICRO_BATCH;
        raw_params.n_seq_max = 1;
        // A sliding layer keeps its window, which is what a plan counts; `rewind` knows that the rest is forgotten.
        raw_params.swa_full = false;
        raw_params.op_offload = params.gpu_takes_over;
        raw_params.n_threads = i32::from(params.threads);
        raw_params.n_threads_batch = i32::from(params.threads);
        raw_params.type_k = cell_type(params.kv_cache);
        raw_params.type_v = cell_type(params.kv_cache);
        raw_params.abort_callback = Some(aborted);
        raw_params.abort_callback_data = ptr::from_ref::<AtomicPtr<AtomicBool>>(&abort)
            .cast_mut()
            .cast();
        // SAFETY: the model is live and held below; the callback's data is boxed and outlives the context.
        let raw = unsafe { sys::llama_init_from_model(model.raw.as_ptr(), raw_params) };
        let raw = NonNull::new(raw).ok_or_else(|| {
            Error::new(
                Code::TierFailed,
                format!(
                    "a context of {} tokens with a {} KV cache could not be made: {}",
                    params.tokens,
                    params.kv_cache.as_str(),
                    super::take_error()
                ),
            )
            .hint("set a smaller context for this tier")
        })?;
        // Without a pool ggml starts its threads anew for every graph.
        // SAFETY: a plain struct of defaults, then a pool that the context uses until both are dropped.
        let threadpool = unsafe {
            let mut pool_params = sys::ggml_threadpool_params_default(i32::from(params.threads));
            NonNull::new(sys::ggml_threadpool_new(&raw mut pool_params))
        };
        let Some(threadpool) = threadpool else {
            // SAFETY: made above and used by nobody.
            unsafe { sys::llama_free(raw.as_ptr()) };
            return Err(Error::new(
                Code::TierFailed,
                format!("{} threads could not be started", params.threads),
            ));
        };
        // SAFETY: both are live; `drop` frees the context first.
        unsafe {
            sys::llama_attach_threadpool(raw.as_ptr(), threadpool.as_ptr(), threadpool.as_ptr())
        };
        Ok(Self {
            raw,
            threadpool,
            abort,
            model,
        })
    }

    /// Tokens that the cache holds at most.
    pub(crate) fn capacity(&self) -> u32 {
        // SAFETY: the context is live.
        unsafe { sys::llama_n_ctx(self.raw.as_ptr()) }
    }

    pub(crate) fn memory(&self) -> Memory {
        let mut out = RawMemory::default();
        // SAFETY: the context is live, `out` is writable.
        unsafe { tierbar_memory_breakdown(self.raw.as_ptr(), &raw mut out) };
        Memory {
            weights_mapped_bytes: out.weights_mapped as u64,
            weights_bytes: out.weights as u64,
            kv_bytes: out.kv as u64,
            compute_bytes: out.compute as u64,
        }
    }

    /// Evaluates tokens at the end of the sequence; the last one's logits can be sampled afterwards.
    ///
    /// At most one micro-batch. `cancel` is read from the compute threads while it runs.
    pub(crate) fn decode(
        &mut self,
        tokens: &mut [Token],
        cancel: &AtomicBool,
    ) -> Result<Decoded, Error> {
        debug_assert!(!tokens.is_empty() && tokens.len() <= MICRO_BATCH as usize);
        if cancel.load(Ordering::Relaxed) {
            return Ok(Decoded::Aborted);
        }
        let count = i32::try_from(tokens.len()).unwrap_or(0);
        self.abort
            .store(ptr::from_ref(cancel).cast_mut(), Ordering::Release);
        // SAFETY: the context is live; the batch borrows `tokens`, which live through the call. `cancel` is borrowed
        // for longer than the pointer to it stands in `abort`.
        let status = unsafe {
            let batch = sys::llama_batch_get_one(tokens.as_mut_ptr(), count);
            let status = sys::llama_decode(self.raw.as_ptr(), batch);
            sys::llama_synchronize(self.raw.as_ptr());
            status
        };
        self.abort.store(ptr::null_mut(), Ordering::Release);
        match status {
            0 => Ok(Decoded::Done),
            2 => Ok(Decoded::Aborted),
            1 => Err(Error::new(
                Code::Internal,
                "the KV cache has no room for tokens that were counted to fit",
            )),
            other => Err(Error::new(
                Code::Internal,
                format!("llama.cpp's decode failed with status {other}"),
            )),
        }
    }

    /// Keeps the first `keep` tokens of the cache, if the model allows that; else empties it. Returns what is kept.
    ///
    /// A recurrent state cannot be rewound, and a sliding layer has forgotten what lies before its window.
    pub(crate) fn rewind(&mut self, keep: usize, held: usize) -> usize {
        let position = i32::try_from(keep).unwrap_or(0);
        let usable = keep == held || {
            // SAFETY: the context is live.
            let oldest = unsafe { sys::llama_memory_seq_pos_min(self.memory_handle(), SEQUENCE) };
            !self.model.is_recurrent()
                && (self.model.sliding_window() == 0
                    || oldest <= (position - self.model.sliding_window()).max(0))
        };
        if usable && keep > 0 {
            // SAFETY: the context is live; a range to the end of the sequence.
            let removed =
                unsafe { sys::llama_memory_seq_rm(self.memory_handle(), SEQUENCE, position, -1) };
            if removed {
                return keep;
            }
        }
        // SAFETY: the context is live.
        unsafe { sys::llama_memory_clear(self.memory_handle(), false) };
        0
    }

    /// How many tokens the cache holds.
    pub(crate) fn held(&self) -> usize {
        // SAFETY: the context is live; -1 stands for an empty sequence.
        let last = unsafe { sys::llama_memory_seq_pos_max(self.memory_handle(), SEQUENCE) };
        usize::try_from(last + 1).unwrap_or(0)
    }

    /// Logits of the last evaluated token, one per token of the vocabulary.
    pub(crate) fn logits(&mut self) -> Option<&[f32]> {
        // SAFETY: the context is live; -1 is the last output row, valid until the next decode, which needs `&mut`.
        let logits = unsafe { sys::llama_get_logits_ith(self.raw.as_ptr(), -1) };
        // SAFETY: a row has as many floats as the vocabulary has tokens.
        (!logits.is_null())
            .then(|| unsafe { std::slice::from_raw_parts(logits, self.model.vocabulary()) })
    }

    fn memory_handle(&self) -> sys::llama_memory_t {
        // SAFETY: the context is live; the handle lives as long.
        unsafe { sys::llama_get_memory(self.raw.as_ptr()) }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: freed once, the user of the pool before the pool.
        unsafe {
            sys::llama_free(self.raw.as_ptr());
            sys::ggml_threadpool_free(self.threadpool.as_ptr());
        }
    }
}

fn cell_type(kv: KvCache) -> sys::ggml_type {
    match kv {
        KvCache::F16 => sys::GGML_TYPE_F16,
        KvCache::Q8_0 => sys::GGML_TYPE_Q8_0,
        KvCache::Q4_0 => sys::GGML_TYPE_Q4_0,
    }
}

/// ggml asks this between the nodes of a graph.
unsafe extern "C" fn aborted(data: *mut c_void) -> bool {
    // SAFETY: `data` is the boxed pointer of `Context::new`, alive as long as the context.
    let flag = unsafe { &*data.cast::<AtomicPtr<AtomicBool>>() }.load(Ordering::Acquire);
    // SAFETY: null, or the flag that `decode` borrows while the graph runs.
    !flag.is_null() && unsafe { &*flag }.load(Ordering::Relaxed)
}

#[repr(C)]
#[derive(Default)]
struct RawMemory {
    weights_mapped: usize,
    weights: usize,
    kv: usize,
    compute: usize,
}

unsafe extern "C" {
    fn tierbar_memory_breakdown(ctx: *const sys::llama_context, out: *mut RawMemory);
}

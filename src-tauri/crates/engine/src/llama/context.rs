//! A context: the KV cache of several sequences, and the evaluation of tokens.

mod state;

use super::{
    batch::Batch,
    interrupt::Interrupt,
    model::{Model, Pooling},
    owned_pointer::OwnedPointer,
    paged::{EvaluationHook, evaluating},
    positions::SequenceEnd,
    threadpool::Threadpool,
};
use crate::turns::Turns;
use llama_cpp_sys_2 as sys;
use std::{
    ffi::c_void,
    sync::{Arc, atomic::Ordering},
};
use tierbar_core::{Code, Error, config::KvCache, worker::Memory};

/// A sequence's number in its context, from 0.
pub(crate) type Sequence = usize;

/// The positions of a row: only the first in models of one dimension; with M-RoPE the position in the sequence, the row and
/// column of an image, and one more in some models.
pub(crate) type RowPositions = [i32; 4];

#[derive(Debug, Clone, Copy)]
pub(crate) struct ContextParams {
    /// The tokens of all sequences together, which share one cache.
    pub(crate) tokens: u32,
    pub(crate) sequences: u16,
    /// The most tokens of one evaluation with logits.
    pub(crate) outputs: u32,
    pub(crate) kv_cache: KvCache,
    /// The most tokens of one evaluation.
    pub(crate) batch: u32,
    pub(crate) threads: u16,
    /// Whether the GPU also computes large batches of layers that the CPU holds. It copies their weights for that, into
    /// buffers that no plan counts.
    pub(crate) gpu_takes_over: bool,
    /// Only for embeddings: how the tokens' outputs are pooled.
    pub(crate) pooling: Option<Pooling>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DecodeOutcome {
    Done,
    /// It was interrupted. The cache has nothing of the batch, or the part up to [`Context::last`].
    Aborted,
    /// The cache has no cells left for the batch, of which nothing was evaluated.
    NoRoom,
}

#[derive(Debug)]
pub(crate) struct Context {
    /// Freed before what it uses, which the fields below hold.
    raw: OwnedPointer<sys::llama_context>,
    threadpool: Arc<Threadpool>,
    /// Read by the abort callback on the compute threads.
    interrupt: Arc<Interrupt>,
    /// Called at the choices of a model whose experts are paged.
    hook: Option<Box<EvaluationHook>>,
    pub(crate) sequences: usize,
    /// The most tokens of one evaluation, and of those the most with logits.
    pub(crate) batch: usize,
    pub(crate) outputs: usize,
    model: Arc<Model>,
}

impl Context {
    /// Creates a context with its own threads and interrupt, or with those of another.
    pub(crate) fn new(
        model: Arc<Model>,
        params: ContextParams,
        beside: Option<&Self>,
    ) -> Result<Self, Error> {
        let interrupt = beside.map_or_else(Arc::default, Self::interrupt);
        // SAFETY: a plain struct of defaults.
        let mut raw_params = unsafe { sys::llama_context_default_params() };
        raw_params.n_ctx = params.tokens;
        // One micro-batch per evaluation, so that a cancel that only works between evaluations (Metal) works soon.
        raw_params.n_batch = params.batch;
        raw_params.n_ubatch = params.batch;
        raw_params.n_seq_max = u32::from(params.sequences);
        // Any conversation may use the whole context while the others do not need it.
        raw_params.kv_unified = true;
        // A row of logits is as wide as the vocabulary, so there is room only for sampled rows, not for a whole
        // micro-batch.
        raw_params.n_outputs_max = params.outputs;
        // A sliding layer keeps only its window, as the plan counts; see `can_truncate`.
        raw_params.swa_full = false;
        raw_params.op_offload = params.gpu_takes_over;
        raw_params.n_threads = i32::from(params.threads);
        raw_params.n_threads_batch = i32::from(params.threads);
        raw_params.type_k = cell_type(params.kv_cache);
        raw_params.type_v = cell_type(params.kv_cache);
        if let Some(pooling) = params.pooling {
            raw_params.embeddings = true;
            raw_params.pooling_type = pooling.raw();
            raw_params.n_outputs_max = 0;
            if pooling.takes_whole() {
                raw_params.n_batch = params.tokens.max(params.batch);
                raw_params.n_ubatch = raw_params.n_batch;
            }
        }
        raw_params.abort_callback = Some(aborted);
        raw_params.abort_callback_data = Arc::as_ptr(&interrupt).cast_mut().cast();
        let hook = |paged| {
            Box::new(EvaluationHook::new(
                Arc::clone(paged),
                Arc::clone(&interrupt),
            ))
        };
        let hook = model.paged.as_ref().map(hook);
        if let Some(hook) = &hook {
            raw_params.cb_eval = Some(evaluating);
            raw_params.cb_eval_user_data = (&raw const **hook).cast_mut().cast();
        }
        // SAFETY: the model and the callbacks' data are live, and held below for as long as the context is.
        let raw = unsafe {
            let raw = sys::llama_init_from_model(model.raw.as_ptr(), raw_params);
            OwnedPointer::new(raw, sys::llama_free)
        };
        let raw = raw.ok_or_else(|| {
            let message = format!(
                "a context of {} tokens with a {} KV cache could not be created: {}",
                params.tokens,
                params.kv_cache.as_str(),
                super::take_error()
            );
            Error::new(Code::TierFailed, message).hint("set a smaller context for this tier")
        })?;
        let threadpool = match beside {
            Some(other) => Arc::clone(&other.threadpool),
            None => Threadpool::new(params.threads)?,
        };
        let threads = threadpool.0.as_ptr();
        // SAFETY: both are live; the context is freed before it lets the pool go.
        unsafe { sys::llama_attach_threadpool(raw.as_ptr(), threads, threads) };
        Ok(Self {
            raw,
            threadpool,
            interrupt,
            hook,
            sequences: params.sequences.into(),
            batch: raw_params.n_ubatch as usize,
            outputs: params.outputs as usize,
            model,
        })
    }

    /// Returns the turns, for work beside the contexts with as many threads.
    pub(crate) fn turns(&self) -> Arc<Turns> {
        Arc::clone(&self.threadpool.1)
    }

    pub(crate) fn interrupt(&self) -> Arc<Interrupt> {
        Arc::clone(&self.interrupt)
    }

    /// Returns the capacity of the cache in tokens, for all sequences together.
    pub(crate) fn capacity(&self) -> u32 {
        // SAFETY: the context is live.
        unsafe { sys::llama_n_ctx(self.raw.as_ptr()) }
    }

    pub(crate) fn memory(&self) -> Memory {
        let mut out = [0; 5];
        // SAFETY: the context is live; `out` has a place for each number of the shim's struct.
        unsafe { tierbar_memory_breakdown(self.raw.as_ptr(), &raw mut out) };
        let [mapped, weights, device, kv, compute] = out.map(|bytes| bytes as u64);
        let memory = Memory {
            weights_mapped_bytes: mapped,
            weights_bytes: weights,
            weights_device_bytes: device,
            kv_bytes: kv,
            compute_bytes: compute,
        };
        let paged = self.model.paged.as_ref();
        paged.map_or(memory, |paged| paged.memory(memory))
    }

    /// Evaluates a batch of at most one micro-batch. Its outputs' logits can be sampled until the next one.
    pub(crate) fn decode(&mut self, batch: &mut Batch) -> Result<DecodeOutcome, Error> {
        debug_assert!(!batch.is_empty() && batch.len() <= self.batch);
        let generates = batch.generates();
        // SAFETY: the batch's arrays live until it changes, and are of one length.
        unsafe { self.evaluate(batch.raw(), generates) }
    }

    /// Evaluates rows in place of tokens at the end of the sequence, each with its positions; with `whole` they attend to
    /// each other. They cannot be sampled.
    pub(crate) fn decode_rows(
        &mut self,
        sequence: Sequence,
        rows: &[f32],
        places: &[RowPositions],
        whole: bool,
    ) -> Result<DecodeOutcome, Error> {
        let count = places.len();
        debug_assert!((1..=self.batch).contains(&count));
        if rows.len() != count * self.model.input_width() {
            let message = "the rows of a medium do not have the model's width";
            return Err(Error::new(Code::Internal, message));
        }
        // One dimension after the other.
        let dimensions = 0..self.model.position_dimensions();
        let mut positions: Vec<_> = dimensions
            .flat_map(|dimension| places.iter().map(move |place| place[dimension]))
            .collect();
        let mut sequence = sequence as sys::llama_seq_id;
        let mut counts = vec![1; count];
        let mut sequences = vec![&raw mut sequence; count];
        let mut outputs = vec![0; count];
        let batch = sys::llama_batch {
            n_tokens: i32::try_from(count).unwrap_or(i32::MAX),
            token: std::ptr::null_mut(),
            embd: rows.as_ptr().cast_mut(),
            pos: positions.as_mut_ptr(),
            n_seq_id: counts.as_mut_ptr(),
            seq_id: sequences.as_mut_ptr(),
            logits: outputs.as_mut_ptr(),
        };
        // SAFETY: the context is live; the arrays live through the call, and are of one length. Rows are only read.
        unsafe {
            sys::llama_set_causal_attn(self.raw.as_ptr(), !whole);
            let decoded = self.evaluate(batch, false);
            sys::llama_set_causal_attn(self.raw.as_ptr(), true);
            decoded
        }
    }

    /// # Safety
    /// The batch's arrays must have the length that it states.
    unsafe fn evaluate(
        &mut self,
        batch: sys::llama_batch,
        generates: bool,
    ) -> Result<DecodeOutcome, Error> {
        let interrupt = &self.interrupt;
        let Some(_turn) = self.threadpool.1.take_unless(|| interrupt.is_requested()) else {
            return Ok(DecodeOutcome::Aborted);
        };
        if let Some(hook) = &self.hook {
            hook.generates(generates);
        }
        // SAFETY: the context is live; as the caller says.
        let status = unsafe {
            let status = sys::llama_decode(self.raw.as_ptr(), batch);
            sys::llama_synchronize(self.raw.as_ptr());
            status
        };
        if let Some(error) = self.hook.as_deref().and_then(EvaluationHook::take_failure) {
            interrupt.stopped.store(false, Ordering::Release);
            return Err(error);
        }
        match status {
            0 => Ok(DecodeOutcome::Done),
            1 => Ok(DecodeOutcome::NoRoom),
            2 => Ok(DecodeOutcome::Aborted),
            // A GPU queue that has failed keeps failing; only a new process gets another one.
            fatal if fatal < -1 => {
                tracing::error!("llama.cpp's decode failed permanently with status {fatal}");
                crate::platform::exit_now(70)
            }
            other => {
                let message = format!("llama.cpp's decode failed with status {other}");
                Err(Error::new(Code::Internal, message))
            }
        }
    }

    /// Returns whether the sequence can go back to this end: a recurrent state has no past, and a sliding layer no longer
    /// has what precedes its window.
    pub(crate) fn can_truncate(&self, sequence: Sequence, end: SequenceEnd) -> bool {
        let last = self.last(sequence);
        if end == SequenceEnd::START || end.last >= last {
            return end.last <= last;
        }
        if self.model.is_recurrent() {
            return false;
        }
        // SAFETY: the context is live.
        let oldest =
            unsafe { sys::llama_memory_seq_pos_min(self.memory_handle(), sequence as i32) };
        match self.model.sliding_window() {
            0 => true,
            window => oldest <= (end.next - window).max(0),
        }
    }

    /// Removes the sequence's tokens after that end; returns `false` if that is impossible.
    pub(crate) fn truncate(&mut self, sequence: Sequence, end: SequenceEnd) -> bool {
        self.can_truncate(sequence, end)
            // SAFETY: the context is live; a range to the end of the sequence.
            && unsafe {
                sys::llama_memory_seq_rm(self.memory_handle(), sequence as i32, end.next, -1)
            }
    }

    pub(crate) fn clear(&mut self, sequence: Sequence) {
        // SAFETY: the context is live; a whole sequence can always be removed.
        unsafe { sys::llama_memory_seq_rm(self.memory_handle(), sequence as i32, -1, -1) };
    }

    /// Makes the empty sequence `to` share the tokens of `from` up to this end. For models that keep their whole past.
    pub(crate) fn share(&mut self, from: Sequence, to: Sequence, end: SequenceEnd) {
        // SAFETY: the context is live; both sequences are below its number of them.
        unsafe {
            sys::llama_memory_seq_cp(self.memory_handle(), from as i32, to as i32, 0, end.next);
        }
    }

    /// Returns the last cached position of the sequence; -1 if there is none.
    pub(crate) fn last(&self, sequence: Sequence) -> i32 {
        // SAFETY: the context is live.
        unsafe { sys::llama_memory_seq_pos_max(self.memory_handle(), sequence as i32) }
    }

    /// Returns the logits of an output, one per token of the vocabulary; `row` is its place in the last batch.
    pub(crate) fn logits(&mut self, row: usize) -> Option<&[f32]> {
        let row = i32::try_from(row).ok()?;
        // SAFETY: the context is live; the row is valid until the next decode, which needs `&mut`.
        let logits = unsafe { sys::llama_get_logits_ith(self.raw.as_ptr(), row) };
        // SAFETY: a row has as many floats as the vocabulary has tokens.
        (!logits.is_null())
            .then(|| unsafe { std::slice::from_raw_parts(logits, self.model.vocabulary()) })
    }

    /// Sets whether evaluations return embeddings besides logits. Then each token of a batch is an output.
    pub(crate) fn set_embeddings(&mut self, on: bool) {
        // SAFETY: the context is live.
        unsafe { sys::llama_set_embeddings(self.raw.as_ptr(), on) };
    }

    /// Returns the embedding of an output; `row` is its place in the last batch.
    pub(crate) fn embedding(&mut self, row: usize) -> Option<&[f32]> {
        let row = i32::try_from(row).ok()?;
        // SAFETY: the context is live; the row is valid until the next decode, which needs `&mut`.
        let embedding = unsafe { sys::llama_get_embeddings_ith(self.raw.as_ptr(), row) };
        self.vector(embedding)
    }

    /// Returns the pooled output of the sequence's tokens in the last batch.
    pub(crate) fn pooled(&mut self, sequence: Sequence) -> Option<&[f32]> {
        // SAFETY: the context is live; the vector is valid until the next decode, which needs `&mut`.
        let embedding =
            unsafe { sys::llama_get_embeddings_seq(self.raw.as_ptr(), sequence as i32) };
        self.vector(embedding)
    }

    /// Gives back the memory of the logits of the last batch, of so many tokens, in a model that pools the outputs of an
    /// encoder. llama.cpp allocates and clears a row for each token, as wide as the vocabulary, and never uses them. It
    /// allocates again only for a larger batch.
    pub(crate) fn release_logits(&mut self, tokens: usize) {
        // SAFETY: the context is live; it has at least as many rows as its last batch has tokens, and none is being read.
        unsafe {
            let logits = sys::llama_get_logits(self.raw.as_ptr());
            let bytes = tokens * self.model.vocabulary() * size_of::<f32>();
            if !logits.is_null() {
                crate::platform::release(std::ptr::slice_from_raw_parts_mut(logits.cast(), bytes));
            }
        }
    }

    /// Returns the score of the sequence's tokens in the last batch, by a model that pools with [`Pooling::Rank`].
    pub(crate) fn score(&mut self, sequence: Sequence) -> Option<f32> {
        // SAFETY: the context is live; with this pooling there is a float at least, until the next decode, which needs `&mut`.
        unsafe {
            let scores = sys::llama_get_embeddings_seq(self.raw.as_ptr(), sequence as i32);
            (!scores.is_null()).then(|| *scores)
        }
    }

    fn vector(&self, embedding: *const f32) -> Option<&[f32]> {
        // SAFETY: an embedding has as many floats as the model says.
        (!embedding.is_null())
            .then(|| unsafe { std::slice::from_raw_parts(embedding, self.model.dimensions()) })
    }

    fn memory_handle(&self) -> sys::llama_memory_t {
        // SAFETY: the context is live; the handle lives as long.
        unsafe { sys::llama_get_memory(self.raw.as_ptr()) }
    }
}

fn cell_type(kv: KvCache) -> sys::ggml_type {
    match kv {
        KvCache::F16 => sys::GGML_TYPE_F16,
        KvCache::Q8_0 => sys::GGML_TYPE_Q8_0,
        KvCache::Q4_0 => sys::GGML_TYPE_Q4_0,
    }
}

/// ggml calls this between the nodes of a graph.
unsafe extern "C" fn aborted(data: *mut c_void) -> bool {
    // SAFETY: `data` is the interrupt of `Context::new`, which the context keeps alive.
    unsafe { &*data.cast::<Interrupt>() }.is_due()
}

unsafe extern "C" {
    fn tierbar_memory_breakdown(ctx: *const sys::llama_context, out: *mut [usize; 5]);
}

//! A loaded model: its weights and its vocabulary.

mod vocabulary;
mod weights;

pub(crate) use weights::{CpuWeights, ExpertsUsed, Weights};

use super::{
    Token,
    backend::{self, take_error},
    owned_pointer::OwnedPointer,
    paged::{PagedWeights, PagingOptions},
};
use llama_cpp_sys_2 as sys;
use std::{
    ffi::{CStr, CString, c_char, c_void},
    os::unix::ffi::OsStrExt,
    path::Path,
    ptr,
    sync::{Arc, OnceLock},
};
use tierbar_core::{Code, Error, ModelAccount};

struct Progress<'a> {
    reported: Option<u8>,
    loading: &'a dyn Fn(u8),
}

/// llama.cpp's progress callback with the loaded share; `false` would stop the load.
unsafe extern "C" fn advanced(share: f32, data: *mut c_void) -> bool {
    // SAFETY: `data` is the progress of `Model::load`, which waits for the load.
    let progress = unsafe { &mut *data.cast::<Progress<'_>>() };
    let percent = (share.clamp(0.0, 1.0) * 100.0) as u8;
    if progress.reported.replace(percent) != Some(percent) {
        (progress.loading)(percent);
    }
    true
}

/// How a model pools its tokens' outputs into one vector, or a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pooling {
    Mean,
    /// The first token's output.
    First,
    /// The last token's output, in a causal model.
    Last,
    /// The last token's output, in a model whose tokens attend to each other.
    LastOfWhole,
    /// A classifier's score of the first token's output, or of the last one's in a causal model.
    Rank,
}

impl Pooling {
    pub(super) fn raw(self) -> sys::llama_pooling_type {
        match self {
            Self::Mean => sys::LLAMA_POOLING_TYPE_MEAN,
            Self::First => sys::LLAMA_POOLING_TYPE_CLS,
            Self::Last | Self::LastOfWhole => sys::LLAMA_POOLING_TYPE_LAST,
            Self::Rank => sys::LLAMA_POOLING_TYPE_RANK,
        }
    }

    /// Returns whether a text must be evaluated in one batch.
    pub(crate) fn takes_whole(self) -> bool {
        self != Self::Last
    }
}

/// Weights and vocabulary. Immutable once loaded, so it can be shared between threads.
#[derive(Debug)]
pub(crate) struct Model {
    /// Set if it is larger than memory. Dropped first: its threads write into the mapping.
    pub(crate) paged: Option<Arc<PagedWeights>>,
    pub(super) raw: OwnedPointer<sys::llama_model>,
    ends: OnceLock<Vec<Token>>,
    /// The part of its experts that a token does not use, if they are fewer than the file's.
    pub(crate) unused_experts: Option<f64>,
}

// SAFETY: llama.cpp only reads a loaded model: contexts that use it keep their own state, and tokenizing and metadata look-ups
// are const functions in C++.
unsafe impl Sync for Model {}

impl Model {
    /// Maps a GGUF file and loads its tensors. `loading` is called once per percent.
    pub(crate) fn load(path: &Path, weights: Weights, loading: &dyn Fn(u8)) -> Result<Self, Error> {
        let invalid = |reason: String| {
            let message = format!("{} could not be loaded: {reason}", path.display());
            Error::new(Code::ModelInvalid, message)
        };
        let name = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| invalid("its path contains a NUL byte".into()))?;
        // SAFETY: a plain struct of defaults.
        let mut params = unsafe { sys::llama_model_default_params() };
        params.use_extra_bufts = !weights.mapped;
        if let Some(layers) = weights.gpu_layers {
            // llama.cpp gives the GPU the output first.
            params.n_gpu_layers = match layers {
                0 => 0,
                layers => i32::try_from(layers).map_or(i32::MAX, |layers| layers.saturating_add(1)),
            };
        }
        if let Some(on_cpu) = weights.on_cpu() {
            // The model keeps the pointer while it lives.
            params.tensor_buft_overrides = Box::leak(Box::new(on_cpu)).as_ptr();
        }
        let overrides = weights.experts_used.map(ExpertsUsed::to_overrides);
        if let Some(overrides) = &overrides {
            params.kv_overrides = overrides.as_ptr();
        }
        // A mapping is clean page cache: the system may drop it without swapping, and loading is lazy.
        params.load_mode = sys::LLAMA_LOAD_MODE_MMAP;
        let mut progress = Progress {
            reported: None,
            loading,
        };
        params.progress_callback = Some(advanced);
        params.progress_callback_user_data = (&raw mut progress).cast();
        // SAFETY: `name` is NUL-terminated and outlives the call, as the progress and the overrides of keys do; the overrides that the params
        // point to are never freed.
        let load = || unsafe {
            let raw = sys::llama_model_load_from_file(name.as_ptr(), params);
            OwnedPointer::new(raw, sys::llama_model_free)
        };
        let raw = if weights.off_gpu.is_some() {
            backend::copying(sys::GGML_BACKEND_DEVICE_TYPE_GPU, load)
        } else {
            load()
        };
        let raw = raw.ok_or_else(|| {
            let (reason, path) = (take_error(), path.display());
            if reason.contains("unknown model architecture") {
                let message = format!("{path} cannot be run: {reason}");
                Error::new(Code::ModelUnsupported, message)
                    .hint("update Tierbar, or choose a model of another architecture")
            } else if reason.contains("alloc") {
                let message = format!("there is not enough memory for {path}: {reason}");
                Error::new(Code::OverBudget, message)
                    .hint("close other programs, or choose a smaller model")
            } else {
                invalid(reason).hint("the file may be damaged: download it again")
            }
        })?;
        Ok(Self {
            paged: None,
            raw,
            ends: OnceLock::new(),
            unused_experts: weights.experts_used.map(|used| used.unused),
        })
    }

    /// Has weights in memory when they are used. Before any context is made.
    ///
    /// # Errors
    /// As [`PagedWeights::page`].
    pub(crate) fn page(
        &mut self,
        path: &Path,
        account: &ModelAccount,
        manner: PagingOptions<'_>,
    ) -> Result<(), Error> {
        // SAFETY: no context has this model yet, and those to come get its hook. It lets the weights go before it is freed.
        let paged = unsafe { PagedWeights::page(self, path, account, manner)? };
        self.paged = Some(Arc::new(paged));
        Ok(())
    }

    pub(super) fn vocab(&self) -> *const sys::llama_vocab {
        // SAFETY: `raw` is a live model; its vocabulary is a part of it.
        unsafe { sys::llama_model_get_vocab(self.raw.as_ptr()) }
    }

    /// Context the model was trained for, in tokens.
    pub(crate) fn context_train(&self) -> u32 {
        // SAFETY: `raw` is a live model.
        u32::try_from(unsafe { sys::llama_model_n_ctx_train(self.raw.as_ptr()) }).unwrap_or(0)
    }

    /// Floats of an embedding.
    pub(crate) fn dimensions(&self) -> usize {
        // SAFETY: `raw` is a live model.
        usize::try_from(unsafe { sys::llama_model_n_embd_out(self.raw.as_ptr()) }).unwrap_or(0)
    }

    /// Returns the floats of an input row.
    pub(crate) fn input_width(&self) -> usize {
        // SAFETY: `raw` is a live model.
        usize::try_from(unsafe { sys::llama_model_n_embd_inp(self.raw.as_ptr()) }).unwrap_or(0)
    }

    /// Returns how many positions a row has: with M-RoPE the one in the sequence, and those in an image.
    pub(crate) fn position_dimensions(&self) -> usize {
        // SAFETY: `raw` is a live model.
        match unsafe { sys::llama_model_rope_type(self.raw.as_ptr()) } {
            sys::LLAMA_ROPE_TYPE_MROPE | sys::LLAMA_ROPE_TYPE_IMROPE => 4,
            _ => 1,
        }
    }

    /// A value of the file's header, as text.
    fn header(&self, key: &str) -> Option<String> {
        let key = CString::new(key).ok()?;
        read_text(|to, room| {
            // SAFETY: `raw` is a live model, the key NUL-terminated, the buffer writable for its length.
            unsafe { sys::llama_model_meta_val_str(self.raw.as_ptr(), key.as_ptr(), to, room) }
        })
    }

    /// Returns how an embedding or reranking model pools; `None` for a generative model.
    pub(crate) fn pooling(&self) -> Option<Pooling> {
        let architecture = self.header("general.architecture").unwrap_or_default();
        let own = |key: &str| self.header(&format!("{architecture}.{key}"));
        let causal = own("attention.causal").is_none_or(|causal| causal != "false");
        let named = own("pooling_type").and_then(|kind| kind.parse().ok());
        let encodes = architecture.contains("bert") || architecture.ends_with("-embedding");
        match named.unwrap_or(sys::LLAMA_POOLING_TYPE_NONE) {
            sys::LLAMA_POOLING_TYPE_MEAN => Some(Pooling::Mean),
            sys::LLAMA_POOLING_TYPE_CLS => Some(Pooling::First),
            sys::LLAMA_POOLING_TYPE_LAST if causal && !encodes => Some(Pooling::Last),
            sys::LLAMA_POOLING_TYPE_LAST => Some(Pooling::LastOfWhole),
            sys::LLAMA_POOLING_TYPE_RANK => Some(Pooling::Rank),
            // The usual pooling of such models, if the file does not name one.
            _ if encodes || !causal => Some(Pooling::Mean),
            _ => None,
        }
    }

    /// Sliding window in tokens; 0 if the model has none.
    pub(crate) fn sliding_window(&self) -> i32 {
        // SAFETY: `raw` is a live model.
        unsafe { sys::llama_model_n_swa(self.raw.as_ptr()) }
    }

    /// Whether the model keeps a recurrent state, which cannot be rewound.
    pub(crate) fn is_recurrent(&self) -> bool {
        // SAFETY: `raw` is a live model.
        unsafe {
            sys::llama_model_is_recurrent(self.raw.as_ptr())
                || sys::llama_model_is_hybrid(self.raw.as_ptr())
        }
    }

    /// Returns whether the model cannot go back to every earlier position.
    pub(crate) fn forgets(&self) -> bool {
        self.is_recurrent() || self.sliding_window() > 0
    }

    /// Returns whether an evaluation can be interrupted: the CPU's can, a GPU's runs to its end.
    pub(crate) fn is_interruptible(&self) -> bool {
        // SAFETY: answers a constant of the build and the machine.
        !unsafe { sys::llama_supports_gpu_offload() }
    }

    /// llama.cpp's one-line description, such as `llama 135M Q4_1`.
    pub(crate) fn description(&self) -> String {
        // SAFETY: `raw` is a live model, the buffer writable for its length.
        let text =
            read_text(|to, room| unsafe { sys::llama_model_desc(self.raw.as_ptr(), to, room) });
        text.unwrap_or_default()
    }

    /// Returns the model's own chat template, or that of another name.
    pub(crate) fn template(&self, name: Option<&CStr>) -> Option<String> {
        let name = name.map_or(ptr::null(), CStr::as_ptr);
        // SAFETY: `raw` is a live model, the name NUL-terminated; the text lives as long, and is NUL-terminated.
        unsafe {
            let text = sys::llama_model_chat_template(self.raw.as_ptr(), name);
            (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
        }
    }
}

/// Reads a text that llama.cpp writes into a buffer, with a zero at its end, and returns the length of.
fn read_text(write: impl FnOnce(*mut c_char, usize) -> i32) -> Option<String> {
    let mut buffer = [0u8; 256];
    let length = write(buffer.as_mut_ptr().cast(), buffer.len());
    let length = usize::try_from(length).ok()?.min(buffer.len() - 1);
    Some(String::from_utf8_lossy(&buffer[..length]).into_owned())
}

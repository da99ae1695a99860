//! A loaded model: its weights and its vocabulary.

use super::{
    Token,
    backend::{self, take_error},
    paged::{Manner, Paged},
};
use llama_cpp_sys_2 as sys;
use std::{
    ffi::{CStr, CString, c_char, c_void},
    os::unix::ffi::OsStrExt,
    path::Path,
    ptr::{self, NonNull},
    sync::{Arc, OnceLock},
};
use tierbar_core::{Code, Error, ModelAccount};

/// Tensors outside the layers.
///
/// llama.cpp maps one range of the file for the GPU, from its first tensor there to the last, and Metal keeps all of it in
/// memory. Quantized files start with tensors outside the layers, such as the output: on the GPU, they would include all
/// layers in between.
const OUTSIDE_LAYERS: &CStr = c"^(?!blk\\.)";
/// `LLM_FFN_EXPS_REGEX` of llama.cpp.
const EXPERTS: &CStr = c"\\.ffn_(up|down|gate|gate_up)_(ch|)exps";
const FEED_FORWARD: &CStr = c"\\.ffn_(up|down|gate)\\.weight";

/// Keeps tensors of these names on the CPU.
fn on_cpu(names: &'static CStr) -> [sys::llama_model_tensor_buft_override; 2] {
    let cpu = |pattern| sys::llama_model_tensor_buft_override {
        pattern,
        // SAFETY: answers a constant.
        buft: unsafe { sys::ggml_backend_cpu_buffer_type() },
    };
    // A null pattern ends the list.
    [cpu(names.as_ptr()), cpu(ptr::null())]
}

/// The placement of a model's weights.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Weights {
    /// How many of the last layers the GPU gets, and nothing else; `None` for the whole model, if there is a GPU.
    pub(crate) gpu_layers: Option<u32>,
    /// Do not copy weights into the CPU's faster layouts, which the system cannot drop.
    pub(crate) mapped: bool,
    /// What stays in the mapping, for the CPU. The GPU gets copies of the rest, and the output with it.
    pub(crate) off_gpu: Option<OffGpu>,
    /// Fewer experts for a token than the model was made for.
    pub(crate) experts_used: Option<ExpertsUsed>,
}

/// Weights that no GPU gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OffGpu {
    /// A mixture's experts.
    Experts,
    /// The feed-forward matrices of a dense model.
    FeedForward,
}

/// The number of experts that a token uses, in place of the file's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExpertsUsed {
    key: [c_char; 128],
    count: u32,
    /// The part of the file's number that is left out.
    unused: f64,
}

impl ExpertsUsed {
    /// `count` in place of the `usual` number of a model of this architecture.
    pub(crate) fn new(architecture: &str, usual: u32, count: u32) -> Self {
        let mut key = [0; 128];
        let name = format!("{architecture}.expert_used_count");
        // The last stays a zero.
        for (to, byte) in key.iter_mut().take(127).zip(name.bytes()) {
            *to = c_char::from_ne_bytes([byte]);
        }
        let unused = 1.0 - f64::from(count) / f64::from(usual.max(1));
        Self { key, count, unused }
    }

    /// The list that llama.cpp reads, which an empty key ends.
    fn to_overrides(self) -> [sys::llama_model_kv_override; 2] {
        let count = |key, count| sys::llama_model_kv_override {
            tag: sys::LLAMA_KV_OVERRIDE_TYPE_INT,
            key,
            __bindgen_anon_1: sys::llama_model_kv_override__bindgen_ty_1 { val_i64: count },
        };
        [count(self.key, self.count.into()), count([0; 128], 0)]
    }
}

struct Progress<'a> {
    reported: Option<u8>,
    loading: &'a dyn Fn(u8),
}

/// llama.cpp's progress callback with the loaded share; `false` would stop the load.
unsafe extern "C" fn advanced(share: f32, data: *mut c_void) -> bool {
    // SAFETY: `data` is the progress of `Model::load`, which waits for the load.
    let progress = unsafe { &mut *data.cast::<Progress<'_>>() };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "from 0 to 100"
    )]
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
    pub(super) raw: NonNull<sys::llama_model>,
    vocab: NonNull<sys::llama_vocab>,
    ends: OnceLock<Vec<Token>>,
    unused_experts: Option<f64>,
    /// Set if it is larger than memory.
    paged: Option<Arc<Paged>>,
}

// SAFETY: llama.cpp only reads a loaded model; contexts that use it keep their own state.
unsafe impl Send for Model {}
// SAFETY: as above; tokenizing and metadata look-ups are const functions in C++.
unsafe impl Sync for Model {}

impl Model {
    /// Maps a GGUF file and loads its tensors. `loading` is called once per percent.
    pub(crate) fn load(path: &Path, weights: Weights, loading: &dyn Fn(u8)) -> Result<Self, Error> {
        let invalid = |reason: String| {
            Error::new(
                Code::ModelInvalid,
                format!("{} could not be loaded: {reason}", path.display()),
            )
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
        let on_cpu = match weights {
            Weights {
                off_gpu: Some(OffGpu::Experts),
                ..
            } => Some(on_cpu(EXPERTS)),
            Weights {
                off_gpu: Some(OffGpu::FeedForward),
                ..
            } => Some(on_cpu(FEED_FORWARD)),
            Weights {
                gpu_layers: Some(_),
                ..
            } => Some(on_cpu(OUTSIDE_LAYERS)),
            _ => None,
        };
        if let Some(on_cpu) = on_cpu {
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
        let load = || unsafe { sys::llama_model_load_from_file(name.as_ptr(), params) };
        let raw = if weights.off_gpu.is_some() {
            backend::copying(sys::GGML_BACKEND_DEVICE_TYPE_GPU, load)
        } else {
            load()
        };
        let Some(raw) = NonNull::new(raw) else {
            let reason = take_error();
            return Err(if reason.contains("unknown model architecture") {
                Error::new(
                    Code::ModelUnsupported,
                    format!("{} cannot be run: {reason}", path.display()),
                )
                .hint("update Tierbar, or choose a model of another architecture")
            } else if reason.contains("alloc") {
                Error::new(
                    Code::OverBudget,
                    format!(
                        "there is not enough memory for {}: {reason}",
                        path.display()
                    ),
                )
                .hint("close other programs, or choose a smaller model")
            } else {
                invalid(reason).hint("the file may be damaged: download it again")
            });
        };
        // SAFETY: `raw` is a live model; its vocabulary lives as long as it does.
        let vocab = unsafe { sys::llama_model_get_vocab(raw.as_ptr()) };
        let vocab =
            NonNull::new(vocab.cast_mut()).ok_or_else(|| invalid("it has no vocabulary".into()))?;
        let ends = OnceLock::new();
        Ok(Self {
            raw,
            vocab,
            ends,
            unused_experts: weights.experts_used.map(|used| used.unused),
            paged: None,
        })
    }

    /// Has weights in memory when they are used. Before any context is made.
    ///
    /// # Errors
    /// As [`Paged::page`].
    pub(crate) fn page(
        &mut self,
        path: &Path,
        account: &ModelAccount,
        manner: Manner<'_>,
    ) -> Result<(), Error> {
        // SAFETY: no context has this model yet, and those to come get its hook. It lets the weights go before it is freed.
        let paged = unsafe { Paged::page(self, path, account, manner)? };
        self.paged = Some(Arc::new(paged));
        Ok(())
    }

    /// The part of its experts that a token does not use, if they are fewer than the file's.
    pub(crate) fn unused_experts(&self) -> Option<f64> {
        self.unused_experts
    }

    /// The weights that come and go, if there are any.
    pub(crate) fn paged(&self) -> Option<&Arc<Paged>> {
        self.paged.as_ref()
    }

    pub(super) fn vocab(&self) -> *const sys::llama_vocab {
        self.vocab.as_ptr()
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
        let mut buffer = [0u8; 64];
        // SAFETY: `raw` is a live model, the key NUL-terminated, the buffer writable for its length.
        let length = unsafe {
            sys::llama_model_meta_val_str(
                self.raw.as_ptr(),
                key.as_ptr(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
            )
        };
        let length = usize::try_from(length).ok()?.min(buffer.len() - 1);
        Some(String::from_utf8_lossy(&buffer[..length]).into_owned())
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

    /// Returns the template in which a reranking model reads a query and a document, if it has one.
    pub(crate) fn rerank_template(&self) -> Option<String> {
        self.template(Some(c"rerank"))
    }

    /// Returns the tokens of a query and a document for a model without a template for them, as llama-server puts them
    /// together: `[BOS] query [EOS] [SEP] document [EOS]`, without those that the vocabulary does not add.
    pub(crate) fn pair(&self, query: &[Token], document: &[Token]) -> Vec<Token> {
        let vocab = self.vocab();
        // SAFETY: the vocabulary lives as long as the model.
        let (begin, end, separator) = unsafe {
            let separator = sys::llama_vocab_sep(vocab);
            let end = sys::llama_vocab_eos(vocab);
            let end = if end < 0 { separator } else { end };
            let added = |token, adds: bool| Some(token).filter(|_| adds);
            (
                added(
                    sys::llama_vocab_bos(vocab),
                    sys::llama_vocab_get_add_bos(vocab),
                ),
                added(end, sys::llama_vocab_get_add_eos(vocab)),
                added(separator, sys::llama_vocab_get_add_sep(vocab)),
            )
        };
        let query = begin.into_iter().chain(query.iter().copied());
        let document = separator.into_iter().chain(document.iter().copied());
        query.chain(end).chain(document).chain(end).collect()
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
        let mut buffer = [0u8; 256];
        // SAFETY: the buffer is writable for its length, which is passed; llama.cpp terminates within it.
        let written = unsafe {
            sys::llama_model_desc(self.raw.as_ptr(), buffer.as_mut_ptr().cast(), buffer.len())
        };
        let written = usize::try_from(written).unwrap_or(0).min(buffer.len() - 1);
        String::from_utf8_lossy(&buffer[..written]).into_owned()
    }

    /// Returns the model's own template; empty without one.
    pub(crate) fn chat_template(&self) -> String {
        self.template(None).unwrap_or_default()
    }

    fn template(&self, name: Option<&CStr>) -> Option<String> {
        let name = name.map_or(ptr::null(), CStr::as_ptr);
        // SAFETY: `raw` is a live model, the name NUL-terminated; the text lives as long, and is NUL-terminated.
        unsafe {
            let text = sys::llama_model_chat_template(self.raw.as_ptr(), name);
            (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
        }
    }

    pub(crate) fn vocabulary(&self) -> usize {
        // SAFETY: the vocabulary lives as long as the model.
        usize::try_from(unsafe { sys::llama_vocab_n_tokens(self.vocab()) }).unwrap_or(0)
    }

    /// Whether the token ends a generation.
    pub(crate) fn is_end(&self, token: Token) -> bool {
        // SAFETY: the vocabulary lives as long as the model; any token value is accepted.
        unsafe { sys::llama_vocab_is_eog(self.vocab(), token) }
    }

    /// Every token that ends a generation.
    pub(crate) fn end_tokens(&self) -> &[Token] {
        // This takes some hundred thousand calls, so the result is cached.
        self.ends.get_or_init(|| {
            (0..Token::try_from(self.vocabulary()).unwrap_or(0))
                .filter(|&token| self.is_end(token))
                .collect()
        })
    }

    /// Tokens that the model must never choose.
    pub(crate) fn suppressed(&self) -> Vec<Token> {
        let mut count = 0;
        // SAFETY: the vocabulary lives as long as the model, and the list as long as the vocabulary.
        unsafe {
            let list = sys::llama_vocab_get_suppress_tokens(self.vocab(), &raw mut count);
            match usize::try_from(count) {
                Ok(count) if count > 0 && !list.is_null() => {
                    std::slice::from_raw_parts(list, count).to_vec()
                }
                _ => Vec::new(),
            }
        }
    }

    /// Tokenizes a text. With `special`, adds the model's BOS and EOS as configured, and parses control tokens in the text.
    pub(crate) fn tokenize(
        &self,
        text: &str,
        special: bool,
        parse_special: bool,
    ) -> Result<Vec<Token>, Error> {
        let too_long = || {
            Error::new(
                Code::BadRequest,
                format!("{} bytes of text cannot be tokenized", text.len()),
            )
        };
        let length = i32::try_from(text.len()).map_err(|_| too_long())?;
        // No tokenizer returns more tokens than bytes, plus BOS and EOS.
        let mut tokens = vec![0; text.len() + 2];
        let capacity = i32::try_from(tokens.len()).map_err(|_| too_long())?;
        // SAFETY: the text pointer is valid for `length` bytes, the output for `capacity` tokens.
        let count = unsafe {
            sys::llama_tokenize(
                self.vocab(),
                text.as_ptr().cast(),
                length,
                tokens.as_mut_ptr(),
                capacity,
                special,
                parse_special,
            )
        };
        tokens.truncate(usize::try_from(count).map_err(|_| too_long())?);
        Ok(tokens)
    }

    /// Appends the token's bytes, which may be partial UTF-8; with `special`, also the text of control tokens.
    pub(crate) fn append_piece(&self, token: Token, special: bool, out: &mut Vec<u8>) {
        let mut buffer = [0u8; 128];
        let write = |buffer: &mut [u8]| {
            let length = i32::try_from(buffer.len()).unwrap_or(i32::MAX);
            // SAFETY: the buffer is writable for `length` bytes.
            unsafe {
                sys::llama_token_to_piece(
                    self.vocab(),
                    token,
                    buffer.as_mut_ptr().cast(),
                    length,
                    0,
                    special,
                )
            }
        };
        let written = write(&mut buffer);
        if let Ok(length) = usize::try_from(written) {
            out.extend_from_slice(&buffer[..length]);
        } else {
            let mut long = vec![0u8; usize::try_from(written.unsigned_abs()).unwrap_or(0)];
            let length = usize::try_from(write(&mut long)).unwrap_or(0);
            out.extend_from_slice(&long[..length]);
        }
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // Their threads write into the mapping.
        self.paged = None;
        // SAFETY: contexts and templates hold an `Arc` of the model, so nothing uses it any more.
        unsafe { sys::llama_model_free(self.raw.as_ptr()) }
    }
}

//! Where a model's weights are placed, and which of them are used.

use llama_cpp_sys_2 as sys;
use std::{
    ffi::{CStr, c_char},
    ptr,
};

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
fn cpu_overrides(names: &'static CStr) -> [sys::llama_model_tensor_buft_override; 2] {
    let cpu = |pattern| sys::llama_model_tensor_buft_override {
        pattern,
        // SAFETY: answers a constant.
        buft: unsafe { sys::ggml_backend_cpu_buffer_type() },
    };
    // A null pattern ends the list.
    [cpu(names.as_ptr()), cpu(ptr::null())]
}

/// The placement of a model's weights.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Weights {
    /// How many of the last layers the GPU gets, and nothing else; `None` for the whole model, if there is a GPU.
    pub(crate) gpu_layers: Option<u32>,
    /// Do not copy weights into the CPU's faster layouts, which the system cannot drop.
    pub(crate) mapped: bool,
    /// What stays in the mapping, for the CPU. The GPU gets copies of the rest, and the output with it.
    pub(crate) off_gpu: Option<CpuWeights>,
    /// Fewer experts for a token than the model was made for.
    pub(crate) experts_used: Option<ExpertsUsed>,
}

impl Weights {
    /// The list of what stays on the CPU, for llama.cpp.
    pub(super) fn on_cpu(&self) -> Option<[sys::llama_model_tensor_buft_override; 2]> {
        Some(cpu_overrides(match (self.off_gpu, self.gpu_layers) {
            (Some(CpuWeights::Experts), _) => EXPERTS,
            (Some(CpuWeights::FeedForward), _) => FEED_FORWARD,
            (None, Some(_)) => OUTSIDE_LAYERS,
            (None, None) => return None,
        }))
    }
}

/// Weights that no GPU gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CpuWeights {
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
    pub(super) unused: f64,
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
    pub(super) fn to_overrides(self) -> [sys::llama_model_kv_override; 2] {
        let count = |key, count| sys::llama_model_kv_override {
            tag: sys::LLAMA_KV_OVERRIDE_TYPE_INT,
            key,
            __bindgen_anon_1: sys::llama_model_kv_override__bindgen_ty_1 { val_i64: count },
        };
        [count(self.key, self.count.into()), count([0; 128], 0)]
    }
}

//! Whether a model fits a machine, known before its download.
//!
//! [`verdict()`] places the model by the sum of [`crate::budget`]; [`recommend`] chooses among a repository's quants. Both
//! are pure: a [`Machine`] is figures, measured or simulated.

mod gpu;
mod instead;
mod machine;
mod speed;
mod verdict;
mod words;

pub use gpu::share as gpu_share;
pub use instead::{Offer, recommend};
pub use machine::{Machine, mac_working_set};
pub use verdict::verdict;

pub use crate::budget::{Line, LineKind};
use crate::{ModelId, budget::Placement, run::KvCache};
use serde::{Deserialize, Serialize};

/// The verdict on one model, for one machine and one context. All sizes in bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Verdict {
    pub placement: Placement,
    /// One plain sentence with the figures that decided.
    pub summary: String,
    /// What the user should know although the model runs.
    pub warning: Option<String>,
    /// Every line of the sum, in reading order.
    pub lines: Vec<Line>,
    #[cfg_attr(test, ts(type = "number"))]
    pub total_bytes: u64,
    /// The memory that all models together may use on the machine.
    #[cfg_attr(test, ts(type = "number"))]
    pub budget_bytes: u64,
    #[cfg_attr(test, ts(type = "number"))]
    pub ram_bytes: u64,
    pub context_tokens: u32,
    pub kv_cache: KvCache,
    /// The largest context whose plan fits; `null` if not even the smallest does.
    pub largest_context_tokens: Option<u32>,
    /// `null` on a machine without a GPU that shares its memory, and where the model does not run.
    pub gpu: Option<GpuShare>,
    /// `null` where it does not run, and until the machine's bandwidths have been measured.
    pub speed: Option<SpeedEstimate>,
    /// Another quant of the same repository that suits this machine better.
    pub instead: Option<Instead>,
    /// The model's header has not been read: the sum stands on published facts of its architecture.
    pub estimated: bool,
}

/// The part of a model on the GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct GpuShare {
    /// Layers on the GPU, of [`GpuShare::layers_all`], with the output as one, which is the last to go there; the others
    /// stay on the CPU and read the same mapping.
    pub layers: u32,
    pub layers_all: u32,
    /// What is placed on the GPU.
    #[cfg_attr(test, ts(type = "number"))]
    pub bytes: u64,
    /// Metal's recommended working set less a margin, and at most the budget.
    #[cfg_attr(test, ts(type = "number"))]
    pub limit_bytes: u64,
}

/// Decode speed in tokens per second: an expected range, and the measured speed once there are answers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct SpeedEstimate {
    pub low: f64,
    pub high: f64,
    /// Weights and cache that one token reads, from memory and from the disk.
    #[cfg_attr(test, ts(type = "number"))]
    pub active_bytes: u64,
    #[cfg_attr(test, ts(type = "number"))]
    pub paged_bytes: u64,
    /// The median of this model's last answers on this machine.
    pub measured: Option<f64>,
    /// How far the measured speed is outside the range: 0 inside it, −0.2 if it is 20 % below `low`.
    pub error: Option<f64>,
}

/// A quant to take instead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Instead {
    pub quant: String,
    /// The reference to download it by, such as `unsloth/Qwen3.5-35B-A3B-GGUF:UD-IQ2_M`.
    pub reference: String,
    #[cfg_attr(test, ts(type = "number"))]
    pub size_bytes: u64,
    pub placement: Placement,
}

/// Whose model file it is; Tierbar deletes only its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum Keeper {
    /// The models folder.
    Tierbar,
    /// A folder that the user added.
    Folder,
    LmStudio,
    Ollama,
    HuggingFace,
}

/// One model that can be loaded, or a file that cannot, with the reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct LibraryModel {
    pub id: ModelId,
    pub path: String,
    #[cfg_attr(test, ts(type = "number"))]
    pub size_bytes: u64,
    pub keeper: Keeper,
    /// What its header contains.
    pub account: Option<crate::ModelAccount>,
    /// Why it cannot be loaded.
    pub error: Option<String>,
    /// The reference that Tierbar downloaded it by, if it did.
    pub reference: Option<String>,
    /// The sha256 that its bytes had when they were last hashed, in lower-case hex.
    pub sha256: Option<String>,
    /// Its media projector in the same folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional = nullable))]
    pub projector: Option<String>,
    /// The tiers that use it.
    pub tiers: Vec<crate::TierId>,
    /// The verdict for this machine, at the context of the first tier that uses it, or else 4096 tokens.
    pub fit: Option<Verdict>,
}

#[cfg(test)]
pub(crate) mod tests;

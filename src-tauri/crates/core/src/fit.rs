//! Whether a model fits a machine, told before the first byte of it is fetched.
//!
//! [`verdict()`] places the model by the sum of [`crate::budget`], [`recommend`] chooses among a repository's quants. Both
//! are pure: a [`Machine`] is numbers, whether they were measured, simulated or asked about.

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
    /// It runs, but the user should know this.
    pub warning: Option<String>,
    /// Every line of the sum, in the order in which people read it.
    pub lines: Vec<Line>,
    #[cfg_attr(test, ts(type = "number"))]
    pub total_bytes: u64,
    /// What models may take on the machine, all together.
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

/// What of a model the GPU holds.
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
    /// Metal's recommended working set less its margin, and no more than models may take.
    #[cfg_attr(test, ts(type = "number"))]
    pub limit_bytes: u64,
}

/// Decode speed, in tokens per second: a range before the first answer, and what was measured after it.
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
    /// Median of this model's last answers on this machine.
    pub measured: Option<f64>,
    /// How far the range missed what was measured: 0 inside it, −0.2 where 20 % less than `low` was measured.
    pub error: Option<f64>,
}

/// A quant to take instead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Instead {
    pub quant: String,
    /// What to ask for, such as `unsloth/Qwen3.5-35B-A3B-GGUF:UD-IQ2_M`.
    pub reference: String,
    #[cfg_attr(test, ts(type = "number"))]
    pub size_bytes: u64,
    pub placement: Placement,
}

/// Who keeps a model file; Tierbar deletes only what is its own.
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
    /// What its header says.
    pub account: Option<crate::ModelAccount>,
    /// Why it cannot be loaded.
    pub error: Option<String>,
    /// What was fetched, if Tierbar fetched it.
    pub reference: Option<String>,
    /// The sha256 that its bytes had when they were last hashed, in lower-case hex.
    pub sha256: Option<String>,
    /// The file beside it by which it sees or hears.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional = nullable))]
    pub projector: Option<String>,
    /// Names of the tiers that load it.
    pub tiers: Vec<crate::TierId>,
    /// For this machine, at the context of the first tier that loads it, else 4096 tokens.
    pub fit: Option<Verdict>,
}

#[cfg(test)]
pub(crate) mod tests;

//! Whether a model fits a machine, known before its download.
//!
//! [`verdict_with`] places the model by the sum of [`crate::budget`]; [`recommend`] chooses among a repository's quants. Both
//! are pure: a [`Machine`] is figures, measured or simulated.

mod cautions;
mod chips;
mod context;
mod gpu;
mod instead;
mod machine;
mod quality;
mod speed;
mod verdict;
mod words;

pub use cautions::Caution;
pub use chips::published_bandwidth;
pub use context::{ContextChoice, ContextSettings, ProfileFit, profiles, settle};
pub use gpu::share as gpu_share;
pub use instead::{Basis, Grounds, Offer, recommend};
pub use machine::{DecodeRate, Machine, mac_working_set};
pub use quality::{QUALITY_SOURCE, QuantLoss, QuantQuality, quality};
pub use verdict::verdict_with;

pub use crate::budget::{Line, LineKind};
use crate::{
    Modality, ModelId,
    budget::Placement,
    catalog::OfferedProjector,
    judgment::Mark,
    run::{KvCache, Paging},
    sampling::ModelSampling,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The verdict on one model, for one machine and one context. All sizes in bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Verdict {
    pub placement: Placement,
    /// One plain sentence with the figures that decided.
    pub summary: String,
    /// What the user should know although the model runs.
    pub warning: Option<String>,
    /// What `warning` says, with the figures, for other languages.
    #[serde(default)]
    pub cautions: Vec<Caution>,
    /// Every line of the sum, in reading order.
    pub lines: Vec<Line>,
    pub total_bytes: u64,
    /// The memory that all models together may use on the machine.
    pub budget_bytes: u64,
    pub ram_bytes: u64,
    pub context_tokens: u32,
    pub kv_cache: KvCache,
    /// The largest context whose plan fits; `null` if not even the smallest does.
    pub largest_context_tokens: Option<u32>,
    /// `null` on a machine without a GPU that shares its memory, and where the model does not run.
    pub gpu: Option<GpuShare>,
    /// `null` where it does not run, and until the machine's bandwidths have been measured.
    pub speed: Option<SpeedEstimate>,
    /// Of a mixture whose experts do not all fit, the expected speed by each way to page them; else none.
    #[serde(default)]
    pub paging_speeds: Vec<PagingSpeed>,
    /// Another quant of the same repository that suits this machine better.
    pub instead: Option<Instead>,
    /// The model's header has not been read: the sum stands on published facts of its architecture.
    pub estimated: bool,
}

/// Tokens per second with one way to page experts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PagingSpeed {
    pub paging: Paging,
    pub low: f64,
    pub high: f64,
}

/// The part of a model on the GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GpuShare {
    /// Layers on the GPU, of [`GpuShare::layers_all`], with the output as one, which is the last to go there; the others
    /// stay on the CPU and read the same mapping.
    pub layers: u32,
    pub layers_all: u32,
    /// What is placed on the GPU.
    pub bytes: u64,
    /// Metal's recommended working set less a margin, and at most the budget.
    pub limit_bytes: u64,
    /// The layers' experts, or a dense model's feed-forward matrices, stay with the CPU, because not all of them fit in memory.
    pub without_experts: bool,
}

/// Decode speed in tokens per second: an expected range, and the measured speed once there are answers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SpeedEstimate {
    pub low: f64,
    pub high: f64,
    /// Weights and cache that one token reads, from memory and from the disk.
    pub active_bytes: u64,
    pub paged_bytes: u64,
    /// The median of this model's last answers on this machine.
    pub measured: Option<f64>,
    /// How far the measured speed is outside the range: 0 inside it, −0.2 if it is 20 % below `low`.
    pub error: Option<f64>,
}

/// A quant to take instead.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Instead {
    pub quant: String,
    /// The reference to download it by, such as `unsloth/Qwen3.5-35B-A3B-GGUF:UD-IQ2_M`.
    pub reference: String,
    pub size_bytes: u64,
    pub placement: Placement,
    /// Why, in one or two sentences.
    pub reason: String,
    /// What `reason` says, with the figures, for other languages.
    pub grounds: Option<Grounds>,
}

/// Whose model file it is; Tierbar deletes only its own.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LibraryModel {
    pub id: ModelId,
    pub path: String,
    pub size_bytes: u64,
    pub keeper: Keeper,
    /// What its header contains.
    #[schema(required = true)]
    pub account: Option<crate::ModelAccount>,
    /// Why it cannot be loaded.
    #[schema(required = true)]
    pub error: Option<String>,
    /// The reference that Tierbar downloaded it by, if it did.
    #[schema(required = true)]
    pub reference: Option<String>,
    /// The sha256 that its bytes had when they were last hashed, in lower-case hex.
    #[schema(required = true)]
    pub sha256: Option<String>,
    /// The file of its media projector, with which it takes images and sound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub projector: Option<String>,
    /// The size of that file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub projector_bytes: Option<u64>,
    /// Why the projector beside it cannot be used; the model answers text all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub projector_error: Option<String>,
    /// The projector that can be downloaded for it, if the catalog knows one and it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub projector_offer: Option<OfferedProjector>,
    /// What a message to it may contain.
    pub input_modalities: Vec<Modality>,
    /// The tiers that use it.
    pub tiers: Vec<crate::TierId>,
    /// The verdict for this machine, at the context of the first tier that uses it, or else 4096 tokens.
    #[schema(required = true)]
    pub fit: Option<Verdict>,
    /// How it runs on this machine with each profile.
    #[serde(default)]
    pub profiles: Vec<ProfileFit>,
    /// How tokens are chosen where neither a request nor its tier says.
    #[serde(default)]
    pub sampling: ModelSampling,
    /// How it did in the examinations that decide what it is trusted with, if it took any. Of an agent's first steps there may be two: of
    /// thinking and without, first as the first tier that uses it answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Mark>,
}

#[cfg(test)]
pub(crate) mod tests;

//! What the host reports about itself: the body of `/tierbar/v1/status` and of the event stream.

use crate::{
    Modality, ModelId, ModelKind, TierId, TierState,
    budget::LoadPlan,
    config::{Engine, KvCache},
    download::DownloadStatus,
    notification::Notification,
    policy::{Alarm, Stance},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Status {
    pub version: String,
    /// Base address of the API, such as `http://127.0.0.1:11435`.
    pub url: String,
    pub ram: Ram,
    pub swap: Swap,
    pub speed: Speed,
    pub budget: BudgetStatus,
    pub guard: GuardStatus,
    /// In reading order: fast, primary, heavy, then the rest by name.
    pub tiers: Vec<TierStatus>,
    /// Active downloads first, in their order; then those that need the user, and the last few finished ones.
    pub downloads: Vec<DownloadStatus>,
    /// Changes whenever models appear, vanish or change: read the list of models again.
    pub models_revision: u64,
    /// Changes whenever the configuration changes: read it again.
    pub config_revision: u64,
    /// Notices for the user, such as an unknown key in the configuration.
    pub notices: Vec<String>,
    /// The last notifications that the user wants, oldest first, for the app and pages to show once.
    pub notifications: Vec<Notification>,
    /// Origins of pages on this machine and its network that were refused, and that the owner may allow; oldest first.
    pub refused_origins: Vec<RefusedOrigin>,
}

/// An origin whose pages were refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RefusedOrigin {
    /// Such as `http://localhost:3000`.
    pub origin: String,
    /// When that was first, in milliseconds since 1970.
    pub since_ms: u64,
}

/// Memory pressure in three levels, as macOS names them.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Pressure {
    #[default]
    Normal,
    Warning,
    Critical,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Ram {
    pub total_bytes: u64,
    /// What can be had without swapping: free and reclaimable.
    pub available_bytes: u64,
    pub pressure: Pressure,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Swap {
    pub used_bytes: u64,
    /// Change over the last minute; negative while swap shrinks. The level is sticky, the growth is the alarm.
    pub growth_bytes_per_minute: i64,
}

/// Speed of the answer that is streaming now, else of the last one; `null` before the first.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Speed {
    pub decode_tokens_per_second: Option<f64>,
    pub prefill_tokens_per_second: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct BudgetStatus {
    /// The memory that all models together may use on this machine.
    pub total_bytes: u64,
    /// Sum of the plans of the tiers that hold memory now.
    pub planned_bytes: u64,
}

/// What serves a tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum EngineKind {
    #[default]
    Embedded,
    Command,
    Endpoint,
}

impl From<&Engine> for EngineKind {
    fn from(engine: &Engine) -> Self {
        match engine {
            Engine::Embedded => Self::Embedded,
            Engine::Command(_) => Self::Command,
            Engine::Endpoint(_) => Self::Endpoint,
        }
    }
}

/// The memory guard's view of the machine, and of its user's settings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct GuardStatus {
    pub alarm: Alarm,
    pub stance: Stance,
    /// Why, in one sentence with figures; `null` without a reason.
    pub why: Option<String>,
    /// When a pause with an end ends, in milliseconds since 1970.
    pub paused_until: Option<i64>,
}

impl TierStatus {
    /// Returns a chat tier of our own engine in this state, without a model, a process or figures.
    pub fn new(id: TierId, state: TierState) -> Self {
        Self {
            id,
            state,
            engine: EngineKind::Embedded,
            model: None,
            is_starter: false,
            aliases: Vec::new(),
            kind: ModelKind::Chat,
            pid: None,
            footprint_bytes: None,
            plan: None,
            context_tokens: 0,
            kv_cache: KvCache::F16,
            input_modalities: Vec::new(),
            loaded_percent: None,
            reason: None,
            unloads_at_ms: None,
            steps_down_to: None,
        }
    }

    /// Returns whether a message to it may contain that; `None` if it is unknown.
    pub fn takes(&self, modality: Modality) -> Option<bool> {
        (!self.input_modalities.is_empty()).then(|| self.input_modalities.contains(&modality))
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TierStatus {
    pub id: TierId,
    pub state: TierState,
    /// What answers for it.
    pub engine: EngineKind,
    /// The configured model; `null` while the tier has none.
    pub model: Option<ModelId>,
    /// Whether that is only the small model that comes with Tierbar, to try things with.
    pub is_starter: bool,
    /// Other names for it, such as Ollama's.
    pub aliases: Vec<String>,
    /// What that is for.
    pub kind: ModelKind,
    pub pid: Option<u32>,
    /// Memory that the worker's end would free.
    pub footprint_bytes: Option<u64>,
    /// The plan of its load, while it has a process; otherwise `null`.
    pub plan: Option<LoadPlan>,
    pub context_tokens: u32,
    /// The type of its KV cache; of no meaning for a command or an endpoint.
    pub kv_cache: KvCache,
    /// What a message to it may contain; empty if that is unknown, as for other programs and servers.
    pub input_modalities: Vec<Modality>,
    /// While the tier starts, the percentage of its model's weights that is loaded.
    pub loaded_percent: Option<u8>,
    /// One plain sentence: why the tier failed, was stopped, or is waiting.
    pub reason: Option<String>,
    /// When it is unloaded if no request comes before, in milliseconds since 1970; `null` while it answers, if it stays
    /// loaded, and without a process.
    pub unloads_at_ms: Option<u64>,
    /// After memory ran low with this tier loaded, the smaller tier that answers its requests for a while.
    pub steps_down_to: Option<TierId>,
}

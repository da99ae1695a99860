//! The configuration's schema. Reading, watching and writing the file is the host's work.
//!
//! The API answers all keys that have a default, so their description requires them (`gateway/src/tests/edge/openapi.rs`). A table that is
//! empty by default says so itself if it is not left out.

mod budget;
mod chain;
mod choice;
mod contexts;
mod costs;
mod defaults;
mod dollars;
mod engine;
mod hours;
pub mod keys;
mod mcp;
mod menu_bar;
mod notifications;
mod prices;
mod schedule;
mod server;
mod shortcut;
mod size;
mod text;
mod time;

pub use crate::run::{Approximation, KvCache, Paging, Profile};
use crate::{ModelId, run::MICRO_BATCH, sampling::Sampling, tier::TierId};
pub use budget::{ChainBudget, Period};
pub use chain::{ChainConfig, Step};
pub use choice::Choice;
pub use contexts::{ContextForm, ContextStore, ContextsConfig};
pub use costs::{CostsConfig, Watts};
use defaults::with_defaults;
pub use dollars::Dollars;
pub use engine::{CommandEngine, Dialect, EndpointEngine, Engine, StopSignal, server_of};
pub use hours::QuietHours;
pub use mcp::McpServerConfig;
pub use menu_bar::{MenuBarClick, MenuBarConfig, MenuBarText};
pub use notifications::NotificationsConfig;
pub use prices::{CacheTokens, CacheWrite, Prices};
pub use schedule::{ScheduleConfig, ScheduledTask, TimeOfDay, Weekday, is_url};
use serde::{Deserialize, Serialize};
pub use server::{LogConfig, ServerConfig};
pub use shortcut::Shortcut;
pub use size::Size;
use std::collections::BTreeMap;
pub use time::{IdleUnload, Span};

with_defaults! {
    /// `config.toml`. Every key has a default; an empty file is a valid configuration with no tiers.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
    pub struct Config {
        /// The address of the API. One that other machines can reach needs `server.network`, and inference there needs a key.
        pub listen: String = Config::DEFAULT_LISTEN.to_owned(),
        pub server: ServerConfig,
        pub log: LogConfig,
        /// Folder of models; empty means `models/` in the data folder.
        pub models_dir: String,
        pub library: LibraryConfig,
        pub downloads: DownloadsConfig,
        /// Origins of web pages, besides our own, that may call the API from a browser.
        pub allowed_origins: Vec<String>,
        pub policy: PolicyConfig,
        pub queue: QueueConfig,
        pub contexts: ContextsConfig,
        pub menu_bar: MenuBarConfig,
        pub notifications: NotificationsConfig,
        /// Prices and watts for `tierbar costs`.
        #[schema(required = true)]
        pub costs: CostsConfig,
        #[schema(required = true)]
        pub tiers: BTreeMap<TierId, TierConfig>,
        /// Lists of tiers to try in order, by the name that requests use.
        #[schema(required = true)]
        pub chains: BTreeMap<TierId, ChainConfig>,
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        pub schedules: BTreeMap<String, ScheduleConfig>,
        /// MCP servers by name; the name is the prefix of their tools.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        pub mcp: BTreeMap<String, McpServerConfig>,
    }
}

impl Config {
    pub const DEFAULT_LISTEN: &'static str = "127.0.0.1:11435";

    /// Tiers in the order that people read them: fast, primary, heavy, then the rest by name.
    pub fn tier_order(&self) -> Vec<&TierId> {
        let rank = |id: &TierId| match id.as_str() {
            "fast" => 0,
            "primary" => 1,
            "heavy" => 2,
            _ => 3,
        };
        let mut ids: Vec<_> = self.tiers.keys().collect();
        ids.sort_by_key(|id| (rank(id), (*id).clone()));
        ids
    }
}

with_defaults! {
    /// Where models are found besides `models_dir`. Tierbar uses them in place and never changes them.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
    pub struct LibraryConfig {
        /// More folders, as absolute paths or from `~`.
        pub folders: Vec<String>,
        /// The models of LM Studio, of Ollama and of the Hugging Face cache.
        pub other_apps: bool = true,
    }
}

with_defaults! {
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
    pub struct DownloadsConfig {
        /// The most bytes per second for all downloads together; 0 sets no limit.
        pub rate_limit: u64,
        /// Models downloaded at the same time.
        pub at_once: u8 = 1,
    }
}

impl DownloadsConfig {
    pub const AT_ONCE: std::ops::RangeInclusive<u8> = 1..=4;
}

with_defaults! {
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
    pub struct PolicyConfig {
        /// How many generative models may be loaded at once.
        pub max_loaded: MaxLoaded,
        /// How long requests for the loaded model may go first, to avoid constant swapping.
        pub patience: Span = Span::seconds(10),
        /// The tier to load again after another was unloaded because it was idle; empty for none.
        pub home: String,
        /// During these hours, models load only on request and unload after one idle minute.
        pub quiet_hours: QuietHours,
        /// On battery below this percentage, models load only on request; 0 ignores the battery.
        pub battery_below: u8 = 20,
        /// On a Mac, load models only on request while another app is full screen. No effect on Linux.
        pub defer_to_full_screen: bool = true,
        /// After memory runs low, requests for the loaded tier go to the next smaller tier for a while.
        pub step_down: bool = true,
        /// Save conversations to disk when their tier unloads, so that they continue without another prefill.
        pub keep_conversations: bool = true,
        /// The most disk space for saved conversations, in MiB; the oldest are deleted first.
        pub conversations_mib: u32 = 2048,
    }
}

impl PolicyConfig {
    /// Returns the disk space for conversations in MiB; `None` if none are kept.
    pub fn conversations(&self) -> Option<u32> {
        Some(self.conversations_mib).filter(|_| self.keep_conversations)
    }

    pub const MOST_PATIENCE: Span = Span::seconds(600);
    pub const MOST_BATTERY: u8 = 100;
}

with_defaults! {
    /// The queue of requests to answer later.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
    pub struct QueueConfig {
        /// Queued requests answered at the same time.
        pub at_once: u8 = 1,
        /// How long an answer is kept.
        pub keep: Span = Span::seconds(7 * 24 * 3600),
        /// The most disk space for requests and their answers.
        pub bytes: Size = Size(256 << 20),
        /// Hosts that clients with an API key may name for webhooks.
        pub webhook_hosts: Vec<String>,
    }
}

impl QueueConfig {
    pub const AT_ONCE: std::ops::RangeInclusive<u8> = 1..=8;
    /// A client needs time to fetch its answer.
    pub const LEAST_KEPT: Span = Span::seconds(60);
    /// One request of the largest size, and its answer.
    pub const LEAST_BYTES: Size = Size(128 << 20);
}

/// `"auto"`: one up to 16 GB of RAM, above that as many as the budget holds; or a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "serde_json::Value", into = "serde_json::Value")]
pub enum MaxLoaded {
    #[default]
    Auto,
    Exactly(u8),
}

impl utoipa::PartialSchema for MaxLoaded {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        choice::or_auto(u8::schema(), None)
    }
}

impl utoipa::ToSchema for MaxLoaded {}

impl TryFrom<serde_json::Value> for MaxLoaded {
    type Error = String;
    fn try_from(value: serde_json::Value) -> Result<Self, String> {
        match (value.as_str(), value.as_u64()) {
            (Some("auto"), _) => Ok(Self::Auto),
            (_, Some(count @ 1..=8)) => Ok(Self::Exactly(count as u8)),
            _ => Err(format!(
                "max_loaded is \"auto\" or a number from 1 to 8, not {value}"
            )),
        }
    }
}

impl From<MaxLoaded> for serde_json::Value {
    fn from(max: MaxLoaded) -> Self {
        match max {
            MaxLoaded::Auto => "auto".into(),
            MaxLoaded::Exactly(count) => count.into(),
        }
    }
}

with_defaults! {
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
    pub struct TierConfig {
        /// A model's id, a file name in the models folder, or a path; empty for none yet. For a command or an endpoint, the name that
        /// it uses for its model.
        pub model: String,
        /// What runs the tier. The keys from `kv_cache` to `draft_model` apply only to `"embedded"`.
        pub engine: Engine,
        /// What the tier is used for. It decides the context and the KV cache where they are `"auto"`.
        pub profile: Profile,
        /// Context in tokens; `"auto"` follows from the model, the machine and the profile.
        #[schema(required = true, schema_with = choice::context_schema)]
        pub context: Choice<u32>,
        #[schema(required = true, schema_with = choice::kv_cache)]
        pub kv_cache: Choice<KvCache>,
        /// What to do with a model that exceeds the memory budget.
        pub paging: Paging,
        /// Let answers of a mixture with an expert cache differ from the model's own, to read less from disk.
        pub approximate: Approximation,
        /// Experts that a token uses, if fewer than the model's. Answers differ from the model's own.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub experts_used: Option<u32>,
        /// CPU threads; 0 lets Tierbar choose, which never takes all cores.
        pub threads: u16,
        /// Tokens evaluated in one batch. A larger batch speeds up prefill to a point and needs larger compute buffers. On a GPU, a
        /// canceled request runs to the end of its batch.
        pub batch: u32 = MICRO_BATCH,
        /// The most layers on the GPU, counted from the last; without it, as many as fit.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub gpu_layers: Option<u32>,
        /// Predict tokens from earlier text. Uses no memory and turns off when it doesn't help.
        pub lookup: bool,
        /// A smaller model of the same vocabulary that predicts tokens, named like `model`; empty for none.
        pub draft_model: String,
        /// Think before answering unless a request says otherwise, if the model can.
        pub thinking: bool,
        /// The sampling unless a request says otherwise; omitted values are the model's own.
        #[schema(required = true)]
        #[serde(skip_serializing_if = "Sampling::is_empty")]
        pub sampling: Sampling,
        /// How long the tier stays loaded without a request.
        pub idle_unload: IdleUnload = IdleUnload::After(Span::seconds(600)),
        /// Load the tier at Tierbar's start and keep it loaded: no other tier takes its memory.
        pub pinned: bool,
    }
}

impl TierConfig {
    /// Returns the model's name in requests to a command or an endpoint, and the tier's model in the API.
    pub fn foreign_model(&self) -> Option<(Option<String>, ModelId)> {
        let remote = Some(self.model.trim()).filter(|model| !model.is_empty());
        let known = match &self.engine {
            Engine::Embedded => return None,
            Engine::Command(command) => command.name(),
            Engine::Endpoint(endpoint) => endpoint.server(),
        };
        let known = remote.unwrap_or(known).to_owned();
        Some((remote.map(str::to_owned), ModelId(known)))
    }

    /// Returns the context; where it is not known, since no model's header says it, one that suits most servers.
    pub fn context_tokens(&self) -> u32 {
        self.context.fixed().unwrap_or(Self::UNKNOWN_CONTEXT)
    }

    const UNKNOWN_CONTEXT: u32 = 16_384;

    /// From the smallest context for a chat to the largest that a current model is trained for.
    pub const CONTEXT: std::ops::RangeInclusive<u32> = 256..=1_048_576;
    /// At least a token for each stream of a worker; above the maximum nothing gets faster.
    pub const BATCH: std::ops::RangeInclusive<u32> = 64..=8192;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiers_are_in_reading_order() {
        let mut config = Config::default();
        for name in ["heavy", "coder", "fast", "primary"] {
            config
                .tiers
                .insert(TierId::new(name).unwrap(), TierConfig::default());
        }
        let order: Vec<_> = config
            .tier_order()
            .into_iter()
            .map(TierId::as_str)
            .collect();
        assert_eq!(order, ["fast", "primary", "heavy", "coder"]);
    }
}

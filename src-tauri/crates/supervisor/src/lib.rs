//! The worker processes and the one task that owns every tier's state.
//!
//! The owner holds the tiers, the queue of requests and the leases, and applies [`tierbar_core::policy`] after
//! every event; it decides nothing about memory itself. Each worker has a small task of its own that spawns the
//! process, reads its handshake, drains its pipes and waits for its end. Everyone else holds a [`Handle`].
//!
//! What a model costs and where its file is comes from the [`ModelSource`] that the host supplies; this crate
//! reads no model and no configuration.

mod backoff;
mod handle;
mod owner;
mod platform;
mod predecessors;
mod process;
mod reclaim;
mod safe_mode;
mod sockets;

pub use handle::{Handle, PagedWorker};
pub use owner::Supervisor;
pub use reclaim::{MachineProbe, MemoryProbe};
pub use safe_mode::BegunLoad;

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};
use tierbar_core::{
    Error, Modality, ModelId, ModelKind, TierId,
    budget::{Budget, LoadPlan},
    config::{Approximation, CommandEngine, Engine, KvCache, Paging, TierConfig},
    journal::Journal,
    lease::BoxFuture,
    policy::Stance,
    sampling::ModelSampling,
};

/// Provides what a tier would load, read from its model's file at each call.
pub trait ModelSource: Send + Sync + fmt::Debug {
    /// Called when a request for a tier that is not loaded arrives, before anything is ended for it.
    ///
    /// # Errors
    /// Why the tier cannot be loaded (no model chosen, file missing or invalid, over budget). The waiting requests
    /// get it as it is, and it becomes the tier's reason; the next request tries again.
    fn prepare(&self, tier: &TierId) -> BoxFuture<'_, Result<LoadSpec, Error>>;
}

/// How a model is run: what a tier configures, and what one load passes to its worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadSettings {
    /// Context in tokens.
    pub context: u32,
    pub kv_cache: KvCache,
    /// CPU threads; 0 lets the worker choose.
    pub threads: u16,
    /// Tokens evaluated in one batch.
    pub batch: u32,
    /// The number of layers, counted from the last, that the GPU holds at most. `None` sets no limit.
    pub gpu_layers: Option<u32>,
    /// Predict tokens from earlier text.
    pub lookup: bool,
    /// What to do with a model that exceeds the memory budget. The plan says what came of it.
    pub paging: Paging,
    /// Whether a mixture's answers may differ from the model's own.
    pub approximate: Approximation,
    /// Experts that a token uses, if fewer than the model's.
    pub experts_used: Option<u32>,
    /// Think before answering where a request does not say.
    pub thinking: bool,
    /// How tokens are chosen where a request does not say: of a tier what it sets, of a load what its model has as well.
    pub sampling: ModelSampling,
}

/// Of a tier whose settings are settled.
impl From<&TierConfig> for LoadSettings {
    fn from(tier: &TierConfig) -> Self {
        Self {
            context: tier.context_tokens(),
            kv_cache: tier.kv_cache.fixed().unwrap_or_default(),
            threads: tier.threads,
            batch: tier.batch,
            gpu_layers: tier.gpu_layers,
            lookup: tier.lookup,
            paging: tier.paging,
            approximate: tier.approximate,
            experts_used: tier.experts_used,
            thinking: tier.thinking,
            sampling: ModelSampling {
                answer: tier.sampling,
                thinking: tier.sampling,
            },
        }
    }
}

/// One load: the worker's arguments, and the plan that the memory policy counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadSpec {
    pub model: ModelId,
    pub path: PathBuf,
    /// The file of the model's media projector, for images and audio.
    pub projector: Option<PathBuf>,
    /// The tier's settings, narrowed to what the model and the machine allow.
    pub settings: LoadSettings,
    /// A smaller model that predicts tokens, in place of `settings.lookup`.
    pub draft_model: Option<PathBuf>,
    /// The program to run in place of our worker. Of the other fields only `model`, the context and `plan` apply then.
    pub command: Option<Box<ForeignCommand>>,
    pub plan: LoadPlan,
}

/// A server of the user's, and how it is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignCommand {
    pub engine: CommandEngine,
    /// The name that the server uses for its model.
    pub remote_model: Option<String>,
    /// The process guard, `tierbar-guard`, which ends the server when this process is gone.
    pub process_guard: PathBuf,
}

/// A tier as configured. A change of what it loads makes a loaded worker stale: it serves the leases that it has, and the
/// next request gets a new one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TierSpec {
    pub id: TierId,
    pub engine: Engine,
    /// `None` while the tier has no model.
    pub model: Option<ModelId>,
    /// Other names for its model.
    pub aliases: Vec<String>,
    /// What its model is for.
    pub kind: ModelKind,
    /// The name that a command or an endpoint uses for its model.
    pub remote_model: Option<String>,
    /// The file that the model's name means now; `None` while it means none. A worker whose file has gone runs on:
    /// only another file makes it stale.
    pub path: Option<PathBuf>,
    /// The file of its media projector. A worker without it is stale.
    pub projector: Option<PathBuf>,
    /// What its model takes with the projector; empty if that is unknown.
    pub input_modalities: Vec<Modality>,
    pub settings: LoadSettings,
    pub draft_model: Option<ModelId>,
    /// How long it stays loaded without a request; `None` for always.
    pub keep: Option<Duration>,
    /// Whether it stays loaded, and is loaded again by itself.
    pub pinned: bool,
}

/// The rules for all tiers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// How long requests for a loaded tier may pass an older one for another tier.
    pub patience: Duration,
    /// The tier to load again when another was unloaded because it was idle.
    pub home: Option<TierId>,
    /// Whether a tier that was loaded when memory ran low steps down.
    pub step_down: bool,
    /// The most MiB of saved conversations; `None` keeps none.
    pub conversations_mib: Option<u32>,
}

/// What [`Supervisor::start`] needs.
#[derive(Debug, Clone)]
pub struct Options {
    pub budget: Budget,
    pub rules: Rules,
    /// The stance until [`Handle::set_stance`].
    pub stance: Stance,
    /// In reading order.
    pub tiers: Vec<TierSpec>,
    pub source: Arc<dyn ModelSource>,
    /// Records what happens, and why.
    pub journal: Arc<dyn Journal>,
    /// The worker's program.
    pub worker: PathBuf,
    /// Folder of the workers' sockets; created with mode 0700.
    pub run_dir: PathBuf,
    /// Folder of `worker-<tier>.log`.
    pub log_dir: PathBuf,
    /// Folder of saved contexts, for the worker; `None` to save none.
    pub contexts_dir: Option<PathBuf>,
    /// Folder of swapped-out conversations, which the worker does not create; `None` to keep none.
    pub swapped_dir: Option<PathBuf>,
    /// File that records running loads; `None` for no record. A model whose load the host did not survive loads only on
    /// request until a load of it succeeds.
    pub loads_file: Option<PathBuf>,
    /// How long a loading worker may be silent before it counts as hung.
    pub load_silence: Duration,
    /// How long a worker may take to end after SIGTERM before it is killed.
    pub stop_deadline: Duration,
    /// How long a stopped tier may finish its answers before its worker is ended.
    pub drain_deadline: Duration,
    /// How often a loaded worker's health is checked.
    pub health_period: Duration,
    /// Reports whether the memory of an ended worker was freed.
    pub memory: Arc<dyn MemoryProbe>,
}

impl Options {
    /// Returns options with the default deadlines, no tiers and no journal.
    pub fn new(
        budget: Budget,
        source: Arc<dyn ModelSource>,
        worker: PathBuf,
        run_dir: PathBuf,
        log_dir: PathBuf,
    ) -> Self {
        Self {
            budget,
            rules: Rules {
                // Longer than most answers take, and no longer than people wait without worrying.
                patience: Duration::from_secs(10),
                home: None,
                step_down: true,
                conversations_mib: None,
            },
            stance: Stance::Open,
            tiers: Vec::new(),
            source,
            journal: Arc::new(()),
            worker,
            run_dir,
            log_dir,
            contexts_dir: None,
            swapped_dir: None,
            loads_file: None,
            // A load prints its progress; two minutes without a line is more than a slow load.
            load_silence: Duration::from_secs(120),
            // A worker saves its conversations and ends within two seconds, unless it hangs.
            stop_deadline: Duration::from_secs(5),
            // Longer than nearly all answers take; a forced stop does not wait.
            drain_deadline: Duration::from_secs(300),
            // A worker without an answer for six periods hangs; pages from a slow disk take less.
            health_period: Duration::from_secs(5),
            memory: Arc::new(MachineProbe),
        }
    }
}

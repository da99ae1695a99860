//! The memory that models may use on a machine, and what one load would use of it.
//!
//! There is one sum, [`LoadPlan`]: the supervisor loads by it, and a verdict reports it. A media projector and a draft
//! model are added at the load if they fit, since the model also answers without them.

mod beside;
mod sum;

pub use crate::run::{MICRO_BATCH, SLOTS};
use crate::{
    Code, Error,
    config::MaxLoaded,
    model::ModelAccount,
    run::{KvCache, Paging},
    tier::TierKind,
};
pub use beside::{CompanionModels, MediaProjector};
use serde::{Deserialize, Serialize};
pub(crate) use sum::{needs, sum};

pub const GIB: u64 = 1 << 30;
pub const MIB: u64 = 1 << 20;

/// The most that the engine keeps of the states of a model with a sliding window or recurrent layers, to go back in a
/// conversation.
pub const CHECKPOINT_BYTES: u64 = 64 * MIB;

/// The most that the models of the embedder's slot use together. A larger model for embeddings takes turns with the
/// generative ones.
pub const EMBEDDER_SLOT: u64 = GIB / 2;

/// What a generative plan leaves to the slot as long as no tier has a model for it, so that one such as nomic-embed-text v1.5
/// in Q4_K_M (84,106,624 bytes) can be added without planning most models anew.
pub const EMBEDDER: u64 = 146_146_432 + 32 * MIB;

/// A context is planned in steps of as many tokens; llama.cpp pads the cache to them.
pub const CONTEXT_STEP: u32 = 256;

/// Kept for the system, the desktop and the user's other programs.
const RESERVE: u64 = 4 * GIB;
/// The same on machines of 8 GB and less, where 4 GiB would leave no room for any model.
const RESERVE_SMALL: u64 = 3 * GIB;
const SMALL_MACHINE: u64 = 8 * GIB;
/// Up to this much RAM exactly one generative model is loaded. 16 GB machines report 16 GiB.
const ONE_MODEL_UP_TO: u64 = 16 * GIB;
const OVERCOMMIT_SMALL: u64 = GIB;

/// The limits that every plan is held against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Bytes for all models together.
    pub total_bytes: u64,
    /// Generative models that may be loaded at once.
    pub max_loaded: usize,
    /// What to do with a model that exceeds it.
    pub paging: Paging,
    /// Of them, what the plan of each generative model leaves to the embedder's slot.
    pub embedder_bytes: u64,
}

impl Budget {
    /// `RAM − 4 GiB`; on machines of 8 GB and less `RAM − 3 GiB`. Machines slightly above 8 GB get at least the budget of 8
    /// GB.
    pub fn of_machine(ram_bytes: u64, max_loaded: MaxLoaded) -> Self {
        let max_loaded = match max_loaded {
            MaxLoaded::Exactly(count) => usize::from(count),
            MaxLoaded::Auto if ram_bytes <= ONE_MODEL_UP_TO => 1,
            MaxLoaded::Auto => usize::MAX,
        };
        Self {
            total_bytes: ram_bytes
                .saturating_sub(RESERVE)
                .max(ram_bytes.min(SMALL_MACHINE).saturating_sub(RESERVE_SMALL)),
            max_loaded,
            paging: Paging::Mmap,
            embedder_bytes: EMBEDDER,
        }
    }

    #[must_use]
    pub(crate) fn less(self, bytes: u64) -> Self {
        Self {
            total_bytes: self.total_bytes.saturating_sub(bytes),
            ..self
        }
    }

    /// Returns the bytes that a dense model may use beyond the budget, of the weights that each token reads.
    ///
    /// 1 GiB on machines of 8 GB and less, where the reserve is mostly the desktop's, which gives way to it; more would
    /// be read from the disk for every token. It shrinks to nothing at 10 GiB, so that more RAM never allows less.
    pub fn overcommit_bytes(&self) -> u64 {
        (SMALL_MACHINE - RESERVE_SMALL + OVERCOMMIT_SMALL)
            .saturating_sub(self.total_bytes)
            .min(OVERCOMMIT_SMALL)
    }
}

crate::words! {
    /// How a model's weights are held while it runs.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
    pub enum Placement {
        /// All weights stay in memory.
        Resident = "resident",
        /// The system reads what exceeds the budget through llama.cpp's file mapping.
        Mmap = "mmap",
        /// Like `Mmap`, and the experts that the router chose are announced to the system before they are read.
        Advise = "advise",
        /// Experts are read into a cache of fixed size.
        Cache = "cache",
        /// A dense model's layers are read one after another for each pass.
        Stream = "stream",
        /// The model does not run on this machine.
        Refused = "refused",
    }
}

impl Placement {
    pub(crate) const SLOWEST: Self = Self::Stream;

    /// Returns the place in an order by speed; 0 is the fastest.
    pub fn rank(self) -> u8 {
        match self {
            Self::Resident => 0,
            Self::Cache => 1,
            Self::Advise => 2,
            Self::Mmap => 3,
            Self::Stream => 4,
            Self::Refused => 5,
        }
    }

    /// Whether the model runs with a part of its weights on the disk.
    pub fn is_paged(self) -> bool {
        !matches!(self, Self::Resident | Self::Refused)
    }
}

/// One line of the sum.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Line {
    pub what: LineKind,
    pub bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LineKind {
    DenseWeights,
    /// Input embeddings, of which a token reads one row.
    Embeddings,
    /// The part of a dense model's weights that exceeds the budget and is read from disk as needed; not part of the sum.
    PagedWeights,
    /// Expert weights that stay in memory.
    ResidentExperts,
    /// The memory for experts that are read when they are chosen.
    ExpertCache,
    /// Expert weights that are read from disk as needed; not part of the sum.
    PagedExperts,
    /// The memory for a dense model's layers, of which the others are read for every token.
    LayerCache,
    KvCache,
    ComputeBuffers,
    /// States of earlier positions, which a model with a sliding window or recurrent layers needs to go back in a
    /// conversation.
    Checkpoints,
    /// A draft model: its weights, cache and buffers.
    DraftModel,
    /// A media projector: its weights, and what encoding its largest image or 30 seconds of sound needs.
    Projector,
    /// The memory that the user has declared for a command.
    Command,
    /// Memory left to the embedder's slot.
    Embedder,
    /// Tierbar's own windows.
    App,
}

impl LineKind {
    /// Returns whether the line is on disk until needed, and so not part of the sum.
    pub fn is_paged(self) -> bool {
        matches!(self, Self::PagedWeights | Self::PagedExperts)
    }
}

/// The plan of one load: every line in bytes, and their sum.
///
/// The plan of each generative model counts the embedder's slot and the app's windows, so with several loaded they are
/// counted for each: a third of a gibibyte stays free per further model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LoadPlan {
    pub placement: Placement,
    /// The lines, without those of zero bytes.
    pub lines: Vec<Line>,
    pub context_tokens: u32,
    /// Whether it takes turns, or has its place in the embedder's slot.
    #[serde(default)]
    #[schema(required = true)]
    pub kind: TierKind,
}

impl LoadPlan {
    /// Returns what the load uses of the budget: all lines except what is read from disk as needed.
    pub fn total_bytes(&self) -> u64 {
        let held = self.lines.iter().filter(|line| !line.what.is_paged());
        sum(held.map(|line| line.bytes))
    }

    /// Adds a line of this many bytes for something optional; returns `None` if the budget has no room for it.
    pub fn with(&self, what: LineKind, bytes: u64, budget: &Budget) -> Option<Self> {
        let sum = self.total_bytes().saturating_add(bytes);
        if self.placement != Placement::Resident || sum > budget.total_bytes {
            return None;
        }
        let mut plan = self.clone();
        plan.lines.push(Line { what, bytes });
        Some(plan)
    }

    /// Returns the bytes of one line; 0 if the plan has none of its kind.
    pub fn bytes(&self, what: LineKind) -> u64 {
        let of_kind = self.lines.iter().filter(|line| line.what == what);
        of_kind.map(|line| line.bytes).sum()
    }
}

/// Plans one load as if nothing else were loaded. The plan of a refused one has what it would need.
///
/// What exceeds the budget may stay on disk if it is embeddings of which a token reads one row, experts, or in a dense
/// model up to [`Budget::overcommit_bytes`], or most of its layers if that is asked for.
pub(crate) fn plan_placement(
    model: &ModelAccount,
    context: u32,
    kv: KvCache,
    batch: u32,
    budget: &Budget,
) -> LoadPlan {
    let mut needs = needs(model, context, kv, batch).within(budget);
    let is_paged = needs.experts > 0 && needs.total_bytes() > budget.total_bytes;
    if is_paged && budget.paging == Paging::AdviseGpu {
        needs = needs.with_gpu_prompts(model);
    }
    let total = needs.total_bytes();
    let over = total.saturating_sub(budget.total_bytes);
    let placement = if over == 0 {
        Placement::Resident
    } else if over > needs.pageable_bytes(budget)
        || budget.paging == Paging::Off
        // A sum at its limit says nothing: an absurd header may need more than can be counted.
        || total == u64::MAX
    {
        Placement::Refused
    } else {
        match budget.paging {
            Paging::Cache | Paging::Stream if needs.can_cache(over) => Placement::Cache,
            Paging::Stream if needs.can_stream(over) => Placement::Stream,
            // Without room for a cache, the system may find some.
            Paging::Cache | Paging::Stream | Paging::Advise | Paging::AdviseGpu
                if needs.experts > 0 =>
            {
                Placement::Advise
            }
            _ => Placement::Mmap,
        }
    };
    let paged = if placement.is_paged() { over } else { 0 };
    needs.plan(placement, paged)
}

/// Plans one load against the whole budget: whether it can run on this machine when nothing else is loaded.
///
/// # Errors
/// [`Code::OverBudget`] with the sum and the budget, and the largest context that would fit if one would.
pub fn plan_load(
    model: &ModelAccount,
    context: u32,
    kv: KvCache,
    batch: u32,
    budget: &Budget,
) -> Result<LoadPlan, Error> {
    let plan = plan_placement(model, context, kv, batch, budget);
    if plan.placement != Placement::Refused {
        return Ok(plan);
    }
    let error = Error::new(
        Code::OverBudget,
        format!(
            "{} needs {} at a context of {} tokens, and this machine's budget for models is {}",
            model.name.as_deref().unwrap_or("the model"),
            gib(plan.total_bytes()),
            plan.context_tokens,
            gib(budget.total_bytes)
        ),
    )
    .detail("needed_bytes", plan.total_bytes())
    .detail("budget_bytes", budget.total_bytes);
    if let Some(tokens) = largest_context(
        model,
        CompanionModels::default(),
        kv,
        batch,
        budget,
        Placement::SLOWEST,
    ) {
        return Err(error
            .hint(format!("set the tier's context to {tokens} tokens or less"))
            .detail("largest_context_tokens", tokens));
    }
    let placement = |paging| {
        let budget = Budget { paging, ..*budget };
        plan_placement(model, context, kv, batch, &budget).placement
    };
    let paging = if budget.paging == Paging::Off && placement(Paging::Advise) != Placement::Refused
    {
        ", or set the tier's paging to \"auto\", which reads the rest of the model from disk as needed"
    } else if placement(Paging::Stream) == Placement::Stream {
        ", or set the tier's paging to \"stream\", which is slow"
    } else {
        ""
    };
    Err(error.hint(format!(
        "choose a smaller model or a smaller quant of this one{paging}"
    )))
}

/// Returns the largest context, in steps of [`CONTEXT_STEP`], at which the model is placed at least as well as `at_least` with all of
/// `beside`; `None` if not even the first step is. A model trained for less than the last step ends it.
pub(crate) fn largest_context(
    model: &ModelAccount,
    beside: CompanionModels<'_>,
    kv: KvCache,
    batch: u32,
    budget: &Budget,
    at_least: Placement,
) -> Option<u32> {
    let trained = model.context_train.max(1);
    let context = |steps: u32| steps.saturating_mul(CONTEXT_STEP).min(trained);
    let fits = |steps| {
        let context = context(steps);
        let budget = budget.less(beside.bytes(context, kv, batch));
        plan_placement(model, context, kv, batch, &budget)
            .placement
            .rank()
            <= at_least.rank()
    };
    let (mut low, mut high) = (0, trained.div_ceil(CONTEXT_STEP) + 1);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low > 0).then(|| context(low))
}

/// Formats bytes for people: GiB with one decimal, MiB below one GiB.
pub fn gib(bytes: u64) -> String {
    let bytes = bytes as f64;
    if bytes < GIB as f64 {
        return format!("{:.0} MiB", bytes / MIB as f64);
    }
    format!("{:.1} GiB", bytes / GIB as f64)
}

#[cfg(test)]
mod tests;

//! How much memory models may take on a machine, and what one load would take of it.

use crate::{
    Code, Error,
    config::{KvCache, MaxLoaded},
    model::ModelAccount,
};
use serde::{Deserialize, Serialize};

pub const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

/// Tokens that the engine evaluates in one graph; llama.cpp's `n_ubatch` default.
pub const MICRO_BATCH: u32 = 512;

/// Kept for the system, the desktop and the user's other programs.
const RESERVE: u64 = 4 * GIB;
/// The same on machines of 8 GB and less, where 4 GiB would leave no room for any model.
const RESERVE_SMALL: u64 = 3 * GIB;
/// Up to this much RAM exactly one generative model is loaded. 16 GB machines report 16 GiB.
const ONE_MODEL_UP_TO: u64 = 16 * GIB;

/// The limits that every plan is held against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Bytes for all models together.
    pub total_bytes: u64,
    /// Generative models that may be loaded at once.
    pub max_loaded: usize,
}

impl Budget {
    /// `RAM − 4 GiB` (3 GiB on machines of 8 GB and less).
    #[must_use]
    pub fn of_machine(ram_bytes: u64, max_loaded: MaxLoaded) -> Self {
        let reserve = if ram_bytes <= 8 * GIB {
            RESERVE_SMALL
        } else {
            RESERVE
        };
        let max_loaded = match max_loaded {
            MaxLoaded::Exactly(count) => usize::from(count),
            MaxLoaded::Auto if ram_bytes <= ONE_MODEL_UP_TO => 1,
            MaxLoaded::Auto => usize::MAX,
        };
        Self {
            total_bytes: ram_bytes.saturating_sub(reserve),
            max_loaded,
        }
    }
}

/// Where a model's weights live while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum Placement {
    /// All of it fits the budget.
    Resident,
    /// What exceeds the budget is read through llama.cpp's file mapping as it is needed.
    Mmap,
    /// It does not run on this machine.
    Refused,
}

/// The written plan of one load: every line in bytes, and their sum.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadPlan {
    pub placement: Placement,
    pub dense_bytes: u64,
    /// Expert weights that the plan counts as resident.
    pub expert_bytes: u64,
    pub kv_bytes: u64,
    pub compute_bytes: u64,
    pub context_tokens: u32,
}

impl LoadPlan {
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        [
            self.dense_bytes,
            self.expert_bytes,
            self.kv_bytes,
            self.compute_bytes,
        ]
        .into_iter()
        .fold(0, u64::saturating_add)
    }
}

/// Plans one load against the whole budget: whether it can run on this machine when nothing else is loaded.
///
/// # Errors
/// [`Code::OverBudget`] with the sum and the budget, and the largest context that would fit if one would.
pub fn plan_load(
    model: &ModelAccount,
    context: u32,
    kv: KvCache,
    budget: &Budget,
) -> Result<LoadPlan, Error> {
    let context = context.min(model.context_train.max(1));
    let mut plan = LoadPlan {
        placement: Placement::Resident,
        dense_bytes: model.dense_bytes,
        expert_bytes: model.expert_bytes,
        kv_bytes: model.kv.bytes(context, MICRO_BATCH, kv),
        compute_bytes: compute_bytes(model, context),
        context_tokens: context,
    };
    if plan.total_bytes() <= budget.total_bytes {
        return Ok(plan);
    }
    let fixed = plan.total_bytes() - plan.expert_bytes;
    if model.expert_bytes > 0 && fixed < budget.total_bytes {
        plan.placement = Placement::Mmap;
        plan.expert_bytes = budget.total_bytes - fixed;
        return Ok(plan);
    }
    let fitting = largest_context(model, kv, budget);
    let error = Error::new(
        Code::OverBudget,
        format!(
            "{} needs {} at a context of {context} tokens, and this machine's budget for models is {}",
            model.name.as_deref().unwrap_or("the model"),
            gib(plan.total_bytes()),
            gib(budget.total_bytes)
        ),
    )
    .detail("needed_bytes", plan.total_bytes())
    .detail("budget_bytes", budget.total_bytes);
    Err(match fitting {
        Some(tokens) => error
            .hint(format!("set the tier's context to {tokens} tokens or less"))
            .detail("largest_context_tokens", tokens),
        None => error.hint("choose a smaller model or a smaller quant of this one"),
    })
}

/// The largest context, in steps of 256, whose plan fits; `None` if not even 256 tokens do.
fn largest_context(model: &ModelAccount, kv: KvCache, budget: &Budget) -> Option<u32> {
    let fits = |steps: u32| {
        let context = steps * 256;
        let fixed = model
            .dense_bytes
            .saturating_add(compute_bytes(model, context));
        fixed.saturating_add(model.kv.bytes(context, MICRO_BATCH, kv)) <= budget.total_bytes
    };
    let (mut low, mut high) = (0, (model.context_train / 256).max(1) + 1);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle) {
            low = middle
        } else {
            high = middle
        }
    }
    (low > 0).then_some(low * 256)
}

/// An upper estimate of the compute graph's buffers: logits of one micro-batch, the widest activations, and an
/// attention mask for the context.
fn compute_bytes(model: &ModelAccount, context: u32) -> u64 {
    let batch = u64::from(MICRO_BATCH);
    let logits = batch * u64::from(model.vocabulary) * 4;
    let activations = batch * u64::from(model.embedding) * 4 * 16;
    let mask = batch * u64::from(context) * 6;
    logits
        .saturating_add(activations)
        .saturating_add(mask)
        .saturating_add(16 * MIB)
}

/// Bytes as people read them: GiB with one decimal, MiB below one.
#[must_use]
pub fn gib(bytes: u64) -> String {
    // A display rounding: a double holds any memory size to far better than a decimal.
    #[expect(clippy::cast_precision_loss)]
    let bytes = bytes as f64;
    let gib = bytes / GIB as f64;
    if gib >= 1.0 {
        format!("{gib:.1} GiB")
    } else {
        format!("{:.0} MiB", bytes / MIB as f64)
    }
}

//! What the user should know of a model that runs.

use super::{GpuShare, LineKind, words::needed_bytes};
use crate::{
    budget::{Budget, EMBEDDER_SLOT, LoadPlan, Placement, gib},
    model::{ModelAccount, ModelKind},
    tier::TierKind,
};
use serde::{Deserialize, Serialize};

/// One thing to know of a model that runs, with its figures. A verdict's `warning` says it in English.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Caution {
    /// The tier asks for more than the context that the model was trained for, and gets that.
    ShorterContext { context_tokens: u32 },
    /// An embedder or reranker needs more than what is reserved beside chat models.
    TakesTurns { reserved_bytes: u64 },
    /// Some of its experts are kept in memory; the others are read from the disk when they are needed.
    ExpertCache { cache_bytes: u64, expert_bytes: u64 },
    /// Some of its experts are read from the disk.
    ExpertsOnDisk { disk_bytes: u64, expert_bytes: u64 },
    /// Some of its weights are read from the disk for every token.
    WeightsOnDisk { disk_bytes: u64 },
    /// It needs more than the budget, by this.
    OverBudget { excess_bytes: u64 },
    /// The CPU computes the other layers.
    PartOnGpu {
        layers: u32,
        layers_all: u32,
        limit_bytes: u64,
    },
    /// There is no room for its draft model.
    NoDraftModel { needed_bytes: u64 },
    /// There is no room for its projector, so it takes text only.
    NoProjector { needed_bytes: u64 },
}

/// Returns what the user should know; nothing of a model that does not run.
pub(super) fn cautions(
    model: &ModelAccount,
    requested: u32,
    plan: &LoadPlan,
    budget: &Budget,
    gpu: Option<&GpuShare>,
    left_out: &[(LineKind, u64)],
) -> Vec<Caution> {
    let mut cautions = Vec::new();
    if plan.placement == Placement::Refused {
        return cautions;
    }
    if requested > plan.context_tokens {
        cautions.push(Caution::ShorterContext {
            context_tokens: plan.context_tokens,
        });
    }
    if model.kind != ModelKind::Chat && plan.kind == TierKind::Generative {
        cautions.push(Caution::TakesTurns {
            reserved_bytes: EMBEDDER_SLOT,
        });
    }
    let expert_bytes = model.expert_bytes;
    let experts = plan.bytes(LineKind::PagedExperts);
    let weights = plan.bytes(LineKind::PagedWeights);
    if plan.placement == Placement::Cache {
        cautions.push(Caution::ExpertCache {
            cache_bytes: plan.bytes(LineKind::ExpertCache),
            expert_bytes,
        });
    } else if experts > 0 {
        cautions.push(Caution::ExpertsOnDisk {
            disk_bytes: experts,
            expert_bytes,
        });
    } else if plan.placement == Placement::Stream {
        cautions.push(Caution::WeightsOnDisk {
            disk_bytes: weights,
        });
    } else if weights > model.row_read_bytes() {
        cautions.push(Caution::OverBudget {
            excess_bytes: needed_bytes(plan).saturating_sub(budget.total_bytes),
        });
    }
    if let Some((gpu, layers)) = gpu.and_then(|gpu| Some((gpu, gpu.fewer_layers()?))) {
        cautions.push(Caution::PartOnGpu {
            layers,
            layers_all: gpu.layers_all,
            limit_bytes: gpu.limit_bytes,
        });
    }
    cautions.extend(left_out.iter().map(|(what, bytes)| match what {
        LineKind::DraftModel => Caution::NoDraftModel {
            needed_bytes: *bytes,
        },
        _ => Caution::NoProjector {
            needed_bytes: *bytes,
        },
    }));
    cautions
}

impl Caution {
    pub(super) fn sentence(&self) -> String {
        match *self {
            Self::ShorterContext { context_tokens } => format!(
                "It was trained for a context of {context_tokens} tokens, so the tier uses that."
            ),
            Self::TakesTurns { reserved_bytes } => format!(
                "It takes turns with chat models, because it needs more than the {} that are reserved beside them.",
                gib(reserved_bytes)
            ),
            Self::ExpertCache {
                cache_bytes,
                expert_bytes,
            } => format!(
                "{} of its {} of experts are kept in memory, and the others are read from disk when they are needed: the speed depends on the disk.",
                gib(cache_bytes),
                gib(expert_bytes)
            ),
            Self::ExpertsOnDisk {
                disk_bytes,
                expert_bytes,
            } => format!(
                "{} of its {} of experts are read from disk, so answers are slow and depend on the speed of the disk.",
                gib(disk_bytes),
                gib(expert_bytes)
            ),
            Self::WeightsOnDisk { disk_bytes } => format!(
                "{} of its weights are read from disk for every token, so answers are very slow.",
                gib(disk_bytes)
            ),
            Self::OverBudget { excess_bytes } => format!(
                "It needs {} more than the budget: close other apps, and expect slow answers while they need memory.",
                gib(excess_bytes)
            ),
            Self::PartOnGpu {
                layers,
                layers_all,
                limit_bytes,
            } => format!(
                "{layers} of its {layers_all} layers fit the GPU's {}. The CPU computes the rest, which is slower.",
                gib(limit_bytes)
            ),
            Self::NoDraftModel { needed_bytes } => format!(
                "It answers without its draft model: there is no room for the {} that it needs.",
                gib(needed_bytes)
            ),
            Self::NoProjector { needed_bytes } => format!(
                "It accepts only text here: there is no room for its projector of {}, which images and sound need.",
                gib(needed_bytes)
            ),
        }
    }
}

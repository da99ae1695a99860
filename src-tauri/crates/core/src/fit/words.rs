//! A verdict in plain sentences, each with the figures that decided.

use super::{GpuShare, LineKind};
use crate::{
    budget::{Budget, EMBEDDER_SLOT, GIB, LoadPlan, Placement, gib},
    model::{ModelAccount, ModelKind},
    tier::TierKind,
};

/// Such as "Runs fully in memory: 11.3 of 12.0 GiB."
pub(super) fn summary(plan: &LoadPlan, budget: &Budget, largest: Option<u32>) -> String {
    let (needed, allowed) = pair(needed_bytes(plan), budget.total_bytes);
    match plan.placement {
        Placement::Resident if plan.kind == TierKind::Embedder => {
            format!("Loads beside a chat model: it needs {needed}.")
        }
        Placement::Resident => match needed.strip_suffix(" GiB") {
            Some(figure) if allowed.ends_with(" GiB") => {
                format!("Runs fully in memory: {figure} of {allowed}.")
            }
            _ => format!("Runs fully in memory: {needed} of {allowed}."),
        },
        Placement::Mmap | Placement::Advise | Placement::Cache | Placement::Stream => format!(
            "Runs with {} of its weights read from disk as needed: it needs {needed}, and the budget is {allowed}.",
            gib(paged_bytes(plan))
        ),
        Placement::Refused => {
            let context = plan.context_tokens;
            let mut text = format!(
                "Does not fit this machine: with a context of {context} tokens it needs {needed}, and the budget is {allowed}."
            );
            if let Some(tokens) = largest {
                text.push_str(&format!(" It fits with a context of {tokens} tokens."));
            }
            text
        }
    }
}

/// What the user should know of a model that runs.
pub(super) fn warning(
    model: &ModelAccount,
    requested: u32,
    plan: &LoadPlan,
    budget: &Budget,
    gpu: Option<&GpuShare>,
    left_out: &[(LineKind, u64)],
) -> Option<String> {
    if plan.placement == Placement::Refused {
        return None;
    }
    let mut sentences = Vec::new();
    if requested > plan.context_tokens {
        sentences.push(format!(
            "It was trained for a context of {} tokens, so the tier uses that.",
            plan.context_tokens
        ));
    }
    if model.kind != ModelKind::Chat && plan.kind == TierKind::Generative {
        sentences.push(format!(
            "It takes turns with chat models, because it needs more than the {} that are reserved beside them.",
            gib(EMBEDDER_SLOT)
        ));
    }
    let experts = plan.bytes(LineKind::PagedExperts);
    if plan.placement == Placement::Cache {
        sentences.push(format!(
            "{} of its {} of experts are kept in memory, and the others are read from disk when they are needed: the speed depends on the disk.",
            gib(plan.bytes(LineKind::ExpertCache)),
            gib(model.expert_bytes)
        ));
    } else if experts > 0 {
        sentences.push(format!(
            "{} of its {} of experts are read from disk, so answers are slow and depend on the speed of the disk.",
            gib(experts),
            gib(model.expert_bytes)
        ));
    } else if plan.placement == Placement::Stream {
        sentences.push(format!(
            "{} of its weights are read from disk for every token, so answers are very slow.",
            gib(plan.bytes(LineKind::PagedWeights))
        ));
    } else if plan.bytes(LineKind::PagedWeights) > model.row_read_bytes() {
        sentences.push(format!(
            "It needs {} more than the budget: close other apps, and expect slow answers while they need memory.",
            gib(needed_bytes(plan).saturating_sub(budget.total_bytes))
        ));
    }
    if let Some((gpu, layers)) = gpu.and_then(|gpu| Some((gpu, gpu.fewer_layers()?))) {
        sentences.push(format!(
            "{layers} of its {} layers fit the GPU's {}. The CPU computes the rest, which is slower.",
            gpu.layers_all,
            gib(gpu.limit_bytes)
        ));
    }
    for (what, bytes) in left_out {
        let bytes = gib(*bytes);
        sentences.push(match what {
            LineKind::DraftModel => {
                format!("It answers without its draft model: there is no room for the {bytes} that it needs.")
            }
            _ => format!(
                "It takes text only here: there is no room for its projector of {bytes}, which images and sound need."
            ),
        });
    }
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

fn paged_bytes(plan: &LoadPlan) -> u64 {
    plan.bytes(LineKind::PagedWeights)
        .saturating_add(plan.bytes(LineKind::PagedExperts))
}

fn needed_bytes(plan: &LoadPlan) -> u64 {
    plan.total_bytes().saturating_add(paged_bytes(plan))
}

/// Two sizes as [`gib`] writes them, or with a further decimal where that would make them look equal.
fn pair(left: u64, right: u64) -> (String, String) {
    if left == right || gib(left) != gib(right) {
        return (gib(left), gib(right));
    }
    #[expect(clippy::cast_precision_loss, reason = "a display rounding")]
    let fine = |bytes: u64| format!("{:.3} GiB", bytes as f64 / GIB as f64);
    (fine(left), fine(right))
}

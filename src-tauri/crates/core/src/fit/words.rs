//! A verdict in plain sentences, each with the figures that decided.

use super::{Caution, LineKind};
use crate::{
    budget::{Budget, GIB, LoadPlan, Placement, gib},
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
            let fits = largest.map(|tokens| format!(" It fits with a context of {tokens} tokens."));
            format!(
                "Does not fit this machine: with a context of {context} tokens it needs {needed}, and the budget is {allowed}.{}",
                fits.unwrap_or_default()
            )
        }
    }
}

/// What the user should know of a model that runs, in sentences.
pub(super) fn warning(cautions: &[Caution]) -> Option<String> {
    let sentences: Vec<_> = cautions.iter().map(Caution::sentence).collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

fn paged_bytes(plan: &LoadPlan) -> u64 {
    plan.bytes(LineKind::PagedWeights)
        .saturating_add(plan.bytes(LineKind::PagedExperts))
}

pub(super) fn needed_bytes(plan: &LoadPlan) -> u64 {
    plan.total_bytes().saturating_add(paged_bytes(plan))
}

/// Two sizes as [`gib`] writes them, or with a further decimal where that would make them look equal.
fn pair(left: u64, right: u64) -> (String, String) {
    if left == right || gib(left) != gib(right) {
        return (gib(left), gib(right));
    }
    let fine = |bytes: u64| format!("{:.3} GiB", bytes as f64 / GIB as f64);
    (fine(left), fine(right))
}

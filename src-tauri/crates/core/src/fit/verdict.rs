//! The verdict: placement, sum, largest context, GPU, speed and an alternative.

use super::{
    ContextChoice, ContextSettings, Instead, Machine, Offer, PagingSpeed, Verdict, gpu,
    instead::recommend, speed, words,
};
use crate::{
    budget::{Budget, LineKind, MICRO_BATCH, Placement, largest_context, place},
    model::ModelAccount,
    run::Paging,
};

/// Returns whether `model` runs on `machine` with this context, and how.
///
/// `others` are the quants of the same repository, which may include the model itself. The caller marks a verdict on an
/// estimated account as such.
#[must_use]
pub fn verdict(
    model: &ModelAccount,
    choice: impl Into<ContextChoice>,
    machine: &Machine,
    others: &[Offer],
) -> Verdict {
    verdict_with(model, None, choice, machine, others)
}

/// As [`verdict`], with the bytes of a media projector. As in a load, it is left out if the model does not fit with it.
#[must_use]
pub fn verdict_with(
    model: &ModelAccount,
    projector: Option<u64>,
    choice: impl Into<ContextChoice>,
    machine: &Machine,
    others: &[Offer],
) -> Verdict {
    let budget = machine.budget();
    let choice = ContextChoice {
        beside: projector.unwrap_or(0),
        ..choice.into()
    };
    let ContextSettings {
        context,
        kv_cache: kv,
    } = choice.settle(model, machine);
    let alone = place(model, context, kv, MICRO_BATCH, &budget);
    let with = projector.and_then(|bytes| alone.with(LineKind::Projector, bytes, &budget));
    let left_out = projector.filter(|_| with.is_none());
    let plan = with.unwrap_or(alone);
    let runs = plan.placement != Placement::Refused;
    let beside = Budget {
        total_bytes: budget
            .total_bytes
            .saturating_sub(plan.bytes(LineKind::Projector)),
        ..budget
    };
    let largest = largest_context(
        model,
        kv,
        MICRO_BATCH,
        &beside,
        if runs {
            plan.placement
        } else {
            Placement::SLOWEST
        },
    );
    let gpu = machine
        .gpu_limit
        .filter(|_| runs)
        .map(|limit| gpu::share(model, &plan, kv, MICRO_BATCH, limit));
    let speed = speed::estimate(model, &plan, kv, machine).filter(|_| runs);
    let by = |(paging, placement)| {
        let budget = Budget { paging, ..budget };
        let plan = place(model, context, kv, MICRO_BATCH, &budget);
        let speed = speed::estimate(model, &plan, kv, machine)?;
        (plan.placement == placement).then_some(PagingSpeed {
            paging,
            low: speed.low,
            high: speed.high,
        })
    };
    let ways = [
        (Paging::Cache, Placement::Cache),
        (Paging::Advise, Placement::Advise),
        (Paging::Mmap, Placement::Mmap),
        // Also of a dense model that is refused otherwise.
        (Paging::Stream, Placement::Stream),
    ];
    let is_paged = plan.bytes(LineKind::PagedExperts) > 0 || model.experts == 0;
    let is_large = plan.placement != Placement::Resident;
    let paging_speeds = ways
        .into_iter()
        .filter(|_| is_paged && is_large)
        .filter_map(by);
    let better = |other: &Instead| other.placement.rank() < plan.placement.rank();
    let instead = recommend(model, choice, machine, others).filter(better);
    Verdict {
        placement: plan.placement,
        summary: words::summary(&plan, &budget, largest),
        warning: words::warning(model, context, &plan, &budget, gpu.as_ref(), left_out),
        total_bytes: plan.total_bytes(),
        budget_bytes: budget.total_bytes,
        ram_bytes: machine.ram_bytes,
        context_tokens: plan.context_tokens,
        kv_cache: kv,
        largest_context_tokens: largest,
        gpu,
        speed,
        paging_speeds: paging_speeds.collect(),
        instead,
        estimated: false,
        lines: plan.lines,
    }
}

//! The verdict: placement, sum, largest context, GPU, speed and an alternative.

use super::{
    ContextChoice, ContextSettings, Instead, Machine, Offer, PagingSpeed, Verdict,
    cautions::cautions, gpu, instead::recommend, speed, words,
};
use crate::{
    budget::{Budget, CompanionModels, LineKind, Placement, largest_context, plan_placement},
    model::ModelAccount,
    run::Paging,
};

/// Returns whether `model` runs on `machine` with this context, and how, with what is loaded beside it. As in a load, that is left out if
/// the model does not fit with it.
///
/// `others` are the quants of the same repository, which may include the model itself. The caller marks a verdict on an
/// estimated account as such.
pub fn verdict_with(
    model: &ModelAccount,
    beside: CompanionModels<'_>,
    choice: impl Into<ContextChoice>,
    machine: &Machine,
    others: &[Offer],
) -> Verdict {
    let choice = choice.into();
    let budget = machine.paging(choice.paging).budget();
    let settings = choice.settle(model, beside, machine);
    let ContextSettings {
        context,
        kv_cache: kv,
    } = settings;
    let batch = choice.batch_tokens();
    let plan = choice.plan(model, beside, settings, machine);
    let (held, left_out) = beside.split(&plan);
    let left_out: Vec<_> = left_out.lines(plan.context_tokens, kv, batch).collect();
    let runs = plan.placement != Placement::Refused;
    let at_least = if runs {
        plan.placement
    } else {
        Placement::SLOWEST
    };
    let largest = largest_context(model, held, kv, batch, &budget, at_least);
    let gpu = machine
        .gpu_limit
        .filter(|_| runs)
        .map(|limit| gpu::share(model, &plan, kv, batch, limit));
    let speed = speed::estimate(model, &plan, kv, machine).filter(|_| runs);
    let by = |(paging, placement)| {
        let budget = Budget { paging, ..budget };
        let plan = plan_placement(model, context, kv, batch, &budget);
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
    let instead = recommend(model, beside, choice, machine, others).filter(better);
    let cautions = cautions(model, context, &plan, &budget, gpu.as_ref(), &left_out);
    Verdict {
        placement: plan.placement,
        summary: words::summary(&plan, &budget, largest),
        warning: words::warning(&cautions),
        cautions,
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

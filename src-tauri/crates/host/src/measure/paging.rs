//! Measures each way to run a model that is larger than memory, on the real worker.

use super::{
    HostParts, ProgressSender,
    bench::{Meter, Runs, decode_rate, last_like, lease, memory, now, prefill_rate},
    check_pressure,
    tune::ends_it,
};
use crate::models::Trial;
use std::sync::Arc;
use tierbar_core::{
    Error, ModelId, TierId, budget::Placement, config::Paging, lease::Tiers, status::Pressure,
};
use tierbar_inference::blocking::blocking;
use tierbar_measure::bench::{BenchMemory, BenchReport, BenchRequest, Figure, PagingRow, Settings};

/// With what each is called once the model is loaded.
const WAYS: [(Paging, Placement); 5] = [
    (Paging::Cache, Placement::Cache),
    (Paging::Advise, Placement::Advise),
    (Paging::AdviseGpu, Placement::Advise),
    (Paging::Mmap, Placement::Mmap),
    (Paging::Stream, Placement::Stream),
];

/// Measures the tier once for each way that its model can be run in, without a context before the prompt. The configuration stays as
/// it is.
pub(super) async fn bench(
    parts: Arc<HostParts>,
    tier: TierId,
    request: BenchRequest,
    settings: Settings,
    progress: ProgressSender,
) -> Result<BenchReport, Error> {
    let tiers = parts.config.supervisor.snapshot();
    let status = tiers.iter().find(|status| status.id == tier);
    let model = status.and_then(|status| status.model.clone());
    let mut report = BenchReport {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        taken_at: now(),
        tier: tier.clone(),
        model: model.unwrap_or_else(|| ModelId(String::new())),
        context_tokens: status.map_or(0, |status| status.context_tokens),
        settings,
        threads_used: 0,
        prompt_tokens: request.prompt_tokens,
        answer_tokens: request.answer_tokens,
        runs: request.runs,
        rows: Vec::new(),
        paging: Vec::new(),
        load_ms: None,
        memory: BenchMemory::default(),
        disturbed: 0,
    };
    for (done, (paging, placement)) in WAYS.into_iter().enumerate() {
        progress.progress(done, WAYS.len(), placement.as_str());
        let row = match measure(&parts, &tier, (paging, placement), &request, &mut report).await {
            Ok(Ok(runs)) => row(paging, &runs),
            Ok(Err(why)) => PagingRow::skipped(paging, why),
            Err(error) if ends_it(&error) => return Err(error),
            // It cannot be loaded in this way.
            Err(error) => PagingRow::skipped(paging, error.message),
        };
        report.paging.push(row);
    }
    progress.progress(WAYS.len(), WAYS.len(), "done");
    if let Some(last) = last_like(&parts, &report).await {
        report.rows = last.rows;
    }
    Ok(report)
}

/// Loads the tier in one way and measures it; or says why that way is none for its model.
async fn measure(
    parts: &Arc<HostParts>,
    tier: &TierId,
    (paging, wanted): (Paging, Placement),
    request: &BenchRequest,
    report: &mut BenchReport,
) -> Result<Result<Runs, String>, Error> {
    let placement = {
        let (parts, tier) = (Arc::clone(parts), tier.clone());
        blocking("reading the model", move || {
            parts.config.models.placement(&tier, paging)
        })
        .await?
    };
    if placement == Placement::Resident {
        return Ok(Err("the model fits in memory".to_owned()));
    }
    if paging == Paging::AdviseGpu && tierbar_telemetry::working_set().is_none() {
        return Ok(Err("there is no GPU that shares the memory".to_owned()));
    }
    if placement != wanted {
        let why = format!("it is run as \"{}\" instead", placement.as_str());
        return Ok(Err(why));
    }
    // Each is a load, so do not start while memory is low.
    check_pressure(parts, Pressure::Warning)?;
    parts.config.begin_trial(tier, Trial::Paging(paging)).await;
    let (worker, load_ms) = lease(parts, tier).await?;
    let mut meter = Meter::new(parts, tier, &worker, request, Pressure::Critical).await?;
    report.model = worker.lease().model().clone();
    report.context_tokens = meter.context_tokens;
    report.threads_used = meter.threads;
    if let Some(why) = request.beyond(0, meter.context_tokens) {
        return Ok(Err(why));
    }
    let runs = meter.at(0, |_, _| {}).await?;
    report.disturbed += meter.disturbed;
    report.load_ms = report.load_ms.or(load_ms);
    report.memory = memory(parts, tier, &worker).await?;
    Ok(runs)
}

fn row(paging: Paging, runs: &Runs) -> PagingRow {
    let reads = runs.decode.iter().filter_map(|run| run.reads);
    let median = |values: Vec<f64>| Figure::of(values).map(|figure| figure.median);
    let each = |tokens: u64| f64::from(u32::try_from(tokens.max(1)).unwrap_or(u32::MAX));
    #[expect(clippy::cast_precision_loss, reason = "a rate of a few digits")]
    let read = reads
        .clone()
        .map(|read| read.read_bytes as f64 / each(read.tokens));
    PagingRow {
        paging,
        prefill: Figure::of(runs.prefill.iter().map(prefill_rate).collect()),
        decode: Figure::of(runs.decode.iter().map(decode_rate).collect()),
        hit_rate: median(reads.clone().map(|read| read.hit_rate).collect()),
        read_bytes_per_token: median(read.collect()),
        wait_ms_per_token: median(
            reads
                .filter_map(|read| Some(read.wait_ms? / each(read.tokens)))
                .collect(),
        ),
        skipped: None,
    }
}

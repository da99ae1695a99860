//! Measures each way to run a model that is larger than memory, on the real worker.

use super::{
    ProgressSender,
    bench::{Meter, Runs, blank_report, decode_rate, last_like, prefill_rate},
    check_pressure,
    tune::ends_it,
};
use crate::{live_config::LiveConfig, models::Trial};
use std::sync::Arc;
use tierbar_core::{Error, TierId, budget::Placement, config::Paging, status::Pressure};
use tierbar_fetch::blocking;
use tierbar_measure::bench::{BenchReport, BenchRequest, Figure, PagingRow, Settings};

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
    host: Arc<LiveConfig>,
    tier: TierId,
    request: BenchRequest,
    settings: Settings,
    progress: ProgressSender,
) -> Result<BenchReport, Error> {
    let mut report = blank_report(&host, tier.clone(), &request, settings);
    for (done, (paging, placement)) in WAYS.into_iter().enumerate() {
        progress.progress(done, WAYS.len(), placement.as_str());
        let row = match measure(&host, &tier, (paging, placement), &request, &mut report).await {
            Ok(Ok(runs)) => row(paging, &runs),
            Ok(Err(why)) => PagingRow::skipped(paging, why),
            Err(error) if ends_it(&error) => return Err(error),
            // It cannot be loaded in this way.
            Err(error) => PagingRow::skipped(paging, error.message),
        };
        report.paging.push(row);
    }
    progress.progress(WAYS.len(), WAYS.len(), "done");
    if let Some(last) = last_like(&host, &report).await {
        report.rows = last.rows;
    }
    Ok(report)
}

/// Loads the tier in one way and measures it; or says why that way is none for its model.
async fn measure(
    host: &LiveConfig,
    tier: &TierId,
    (paging, wanted): (Paging, Placement),
    request: &BenchRequest,
    report: &mut BenchReport,
) -> Result<Result<Runs, String>, Error> {
    let (models, of) = (Arc::clone(&host.models), tier.clone());
    let placement = blocking("reading the model", move || models.placement(&of, paging)).await?;
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
    check_pressure(host, Pressure::Warning)?;
    host.begin_trial(tier, Trial::Paging(paging)).await;
    let (mut meter, load_ms) = Meter::lease(host, tier, request).await?;
    let runs = match request.beyond(0, meter.context_tokens) {
        Some(why) => Err(why),
        None => meter.at(0, |_, _| {}).await?,
    };
    report.load_ms = report.load_ms.or(load_ms);
    meter.complete(report).await?;
    Ok(runs)
}

fn row(paging: Paging, runs: &Runs) -> PagingRow {
    let reads = runs.decode.iter().filter_map(|run| run.reads);
    let median = |values: Vec<f64>| Figure::from_runs(values).map(|figure| figure.median);
    let each = |tokens: u64| f64::from(u32::try_from(tokens.max(1)).unwrap_or(u32::MAX));
    #[expect(clippy::cast_precision_loss, reason = "a rate of a few digits")]
    let read = reads
        .clone()
        .map(|read| read.read_bytes as f64 / each(read.tokens));
    PagingRow {
        paging,
        prefill: Figure::from_runs(runs.prefill.iter().map(prefill_rate).collect()),
        decode: Figure::from_runs(runs.decode.iter().map(decode_rate).collect()),
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

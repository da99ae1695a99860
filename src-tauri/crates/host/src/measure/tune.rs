//! The search for a tier's fastest settings on the real worker: each candidate is loaded, measured and reported.

use super::{
    ProgressSender,
    bench::{Meter, configured_settings, decode_rate, prefill_rate},
    check_pressure,
};
use crate::{live_config::LiveConfig, measured::now, models::Trial};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tierbar_core::{Code, Config, Error, ModelId, TierId, status::Pressure};
use tierbar_fetch::blocking;
use tierbar_measure::{
    bench::{Figure, Settings},
    tune::{CandidateMeasurement, Knob, Search, TuneReport, TuneRequest, TuneRow},
};

/// Tries settings one after another; the configuration changes only at the end, if at all.
pub(super) async fn tune(
    host: Arc<LiveConfig>,
    tier: TierId,
    request: TuneRequest,
    progress: ProgressSender,
) -> Result<TuneReport, Error> {
    let before = configured_settings(&host, &tier).await?;
    let (models, of) = (Arc::clone(&host.models), tier.clone());
    let (limits, context) = blocking("reading the model", move || models.limits(&of)).await?;
    let request = request.fitting(context);
    let mut search = Search::new(request.clone(), before, limits);
    let mut seen = CandidateFacts::default();
    let mut done = 0;
    while let Some((knob, settings)) = search.next_candidate() {
        check_unchanged(&host, &tier, before).await?;
        // Each candidate is a load, so do not start while memory is low.
        check_pressure(&host, Pressure::Warning)?;
        progress.progress(done, search.expected(), TuneRow::named(settings));
        host.begin_trial(&tier, Trial::Settings(settings)).await;
        search.record(match candidate(&host, &tier, &request, &mut seen).await {
            Err(error) if knob == Knob::Start || ends_it(&error) => return Err(error),
            measured => measured.map_err(|error| error.message),
        });
        done += 1;
        if let Some(row) = search.last_row() {
            progress.row(row);
        }
    }
    let (rows, after, gain) = search.finish();
    progress.progress(done, done, "done");
    let written = after != before && !request.dry_run && write(&host, &tier, before, after).await?;
    Ok(TuneReport {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        taken_at: now(),
        model: seen.model.unwrap_or_else(|| ModelId(String::new())),
        context_tokens: seen.context_tokens,
        depth: request.depth,
        prompt_tokens: request.prompt_tokens,
        answer_tokens: request.answer_tokens,
        runs: request.runs,
        rows,
        before,
        after,
        gain,
        written,
        summary: TuneReport::sentence(before, after, gain, written),
        disturbed: seen.disturbed,
        tier,
    })
}

/// What the candidates show besides their figures.
#[derive(Debug, Default)]
struct CandidateFacts {
    model: Option<ModelId>,
    context_tokens: u32,
    disturbed: u32,
}

/// Loads the tier with a candidate's settings, and measures it.
async fn candidate(
    host: &LiveConfig,
    tier: &TierId,
    request: &TuneRequest,
    seen: &mut CandidateFacts,
) -> Result<CandidateMeasurement, Error> {
    let measurement = request.measurement();
    let (mut meter, load_ms) = Meter::lease(host, tier, &measurement).await?;
    seen.model = Some(meter.model());
    seen.context_tokens = meter.context_tokens;
    let runs = meter.at(request.depth, |_, _| {}).await;
    seen.disturbed += meter.disturbed;
    let runs = runs?.map_err(|why| Error::new(Code::TierFailed, why))?;
    let pairs = || runs.prefill.iter().zip(&runs.decode);
    // The times of prompt and answer, without the decode run's own prompt of one token.
    let request_ms = pairs().map(|(read, written)| read.prompt_ms + written.predicted_ms);
    let median = |rates: Vec<f64>| Figure::from_runs(rates).map_or(0.0, |figure| figure.median);
    Ok(CandidateMeasurement {
        request_ms: Figure::from_runs(request_ms.collect()).ok_or_else(|| {
            let message = "the worker reported times that are not numbers";
            Error::new(Code::Internal, message)
        })?,
        prefill: median(runs.prefill.iter().map(prefill_rate).collect()),
        decode: median(runs.decode.iter().map(decode_rate).collect()),
        threads_used: meter.threads,
        load_ms,
        memory: meter.memory().await?,
    })
}

pub(super) fn ends_it(error: &Error) -> bool {
    matches!(
        error.code,
        Code::ShuttingDown | Code::TierUnknown | Code::TierStopped | Code::Overloaded
    )
}

/// # Errors
/// `ConfigInvalid` if the tier's configuration was changed meanwhile; that change takes precedence.
async fn check_unchanged(host: &LiveConfig, tier: &TierId, before: Settings) -> Result<(), Error> {
    if configured_settings(host, tier).await? == before {
        return Ok(());
    }
    let message = format!("the settings of {tier} changed while it was being tuned");
    Err(Error::new(Code::ConfigInvalid, message).hint("tune it again"))
}

/// Writes the best settings to the configuration; returns `false` if the tier was changed meanwhile.
async fn write(
    host: &LiveConfig,
    tier: &TierId,
    before: Settings,
    after: Settings,
) -> Result<bool, Error> {
    let mut same = false;
    let change = |config: &Config| {
        let settled = |tier| Settings::for_tier(&host.models.settled(tier));
        same = config.tiers.get(tier).map(settled) == Some(before);
        match same {
            true => patch(tier, before, after),
            false => Map::new(),
        }
    };
    host.change_config(change).await?;
    Ok(same)
}

fn patch(tier: &TierId, before: Settings, after: Settings) -> Map<String, Value> {
    let (before, mut changed) = (json!(before), json!(after));
    if let Some(settings) = changed.as_object_mut() {
        settings.retain(|key, value| before[key.as_str()] != *value);
    }
    Map::from_iter([("tiers".to_owned(), json!({tier.as_str(): changed}))])
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierbar_core::config::KvCache;

    #[test]
    fn a_patch_holds_changes_and_removes_defaults() {
        let tier = TierId::new("fast").unwrap();
        let before = Settings {
            threads: 0,
            batch: 512,
            gpu_layers: Some(7),
            kv_cache: KvCache::F16,
        };
        let after = Settings {
            threads: 3,
            gpu_layers: None,
            ..before
        };
        assert_eq!(
            Value::Object(patch(&tier, before, after)),
            json!({"tiers": {"fast": {"threads": 3, "gpu_layers": null}}})
        );
        let after = Settings {
            batch: 256,
            kv_cache: KvCache::Q8_0,
            ..before
        };
        assert_eq!(
            Value::Object(patch(&tier, before, after)),
            json!({"tiers": {"fast": {"batch": 256, "kv_cache": "q8_0"}}})
        );
    }
}

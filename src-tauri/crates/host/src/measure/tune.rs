//! The search for a tier's fastest settings on the real worker: each candidate is loaded, measured and reported.

use super::{
    HostParts, ProgressSender,
    bench::{Meter, configured_settings, decode_rate, lease, memory, now, prefill_rate},
    check_pressure,
};
use crate::models::Trial;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tierbar_core::{Code, Config, Error, ModelId, TierId, status::Pressure};
use tierbar_inference::blocking::blocking;
use tierbar_measure::{
    bench::{Figure, Settings},
    tune::{CandidateMeasurement, Knob, Search, TuneReport, TuneRequest, TuneRow},
};

/// Tries settings one after another; the configuration changes only at the end, if at all.
pub(super) async fn tune(
    parts: Arc<HostParts>,
    tier: TierId,
    request: TuneRequest,
    progress: ProgressSender,
) -> Result<TuneReport, Error> {
    let before = configured_settings(&parts, &tier).await?;
    let (limits, context) = {
        let (parts, tier) = (Arc::clone(&parts), tier.clone());
        blocking("reading the model", move || {
            parts.config.models.limits(&tier)
        })
        .await?
    };
    let request = request.fitting(context);
    let mut search = Search::new(request.clone(), before, limits);
    let mut seen = CandidateFacts::default();
    let mut done = 0;
    while let Some((knob, settings)) = search.next_candidate() {
        check_unchanged(&parts, &tier, before).await?;
        // Each candidate is a load, so do not start while memory is low.
        check_pressure(&parts, Pressure::Warning)?;
        progress.progress(done, search.expected(), TuneRow::named(settings));
        parts
            .config
            .begin_trial(&tier, Trial::Settings(settings))
            .await;
        let measured = candidate(&parts, &tier, &request, &mut seen).await;
        match &measured {
            Err(error) if knob == Knob::Start || ends_it(error) => return Err(error.clone()),
            _ => {}
        }
        search.record(measured.map_err(|error| error.message));
        done += 1;
        if let Some(row) = search.last_row() {
            progress.row(row);
        }
    }
    let (rows, after, gain) = search.finish();
    progress.progress(done, done, "done");
    let written =
        after != before && !request.dry_run && write(&parts, &tier, before, after).await?;
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
    parts: &HostParts,
    tier: &TierId,
    request: &TuneRequest,
    seen: &mut CandidateFacts,
) -> Result<CandidateMeasurement, Error> {
    let (worker, load_ms) = lease(parts, tier).await?;
    let measurement = request.measurement();
    let mut meter = Meter::new(parts, tier, &worker, &measurement, Pressure::Critical).await?;
    seen.model = Some(worker.lease().model().clone());
    seen.context_tokens = meter.context_tokens;
    let runs = meter.at(request.depth, |_, _| {}).await;
    seen.disturbed += meter.disturbed;
    let threads_used = meter.threads;
    let runs = runs?.map_err(|why| Error::new(Code::TierFailed, why))?;
    let pairs = || runs.prefill.iter().zip(&runs.decode);
    // The times of prompt and answer, without the decode run's own prompt of one token.
    let request_ms = pairs().map(|(read, written)| read.prompt_ms + written.predicted_ms);
    let median = |rates: Vec<f64>| Figure::of(rates).map_or(0.0, |figure| figure.median);
    Ok(CandidateMeasurement {
        request_ms: Figure::of(request_ms.collect()).ok_or_else(|| {
            Error::new(
                Code::Internal,
                "the worker reported times that are not numbers",
            )
        })?,
        prefill: median(runs.prefill.iter().map(prefill_rate).collect()),
        decode: median(runs.decode.iter().map(decode_rate).collect()),
        threads_used,
        load_ms,
        memory: memory(parts, tier, &worker).await?,
    })
}

/// Returns whether an error ends the search.
pub(super) fn ends_it(error: &Error) -> bool {
    matches!(
        error.code,
        Code::ShuttingDown | Code::TierUnknown | Code::TierStopped | Code::Overloaded
    )
}

/// # Errors
/// `ConfigInvalid` if the tier's configuration was changed meanwhile; that change takes precedence.
async fn check_unchanged(parts: &HostParts, tier: &TierId, before: Settings) -> Result<(), Error> {
    if configured_settings(parts, tier).await? == before {
        return Ok(());
    }
    Err(Error::new(
        Code::ConfigInvalid,
        format!("the settings of {tier} changed while it was being tuned"),
    )
    .hint("tune it again"))
}

/// Writes the best settings to the configuration; returns `false` if the tier was changed meanwhile.
async fn write(
    parts: &HostParts,
    tier: &TierId,
    before: Settings,
    after: Settings,
) -> Result<bool, Error> {
    let mut same = false;
    parts
        .config
        .change_config(|config: &Config| {
            let settled = |tier| Settings::of(&parts.config.models.settled(tier));
            same = config.tiers.get(tier).map(settled) == Some(before);
            if same {
                patch(tier, before, after)
            } else {
                Map::new()
            }
        })
        .await?;
    Ok(same)
}

/// Returns only the changed settings.
fn patch(tier: &TierId, before: Settings, after: Settings) -> Map<String, Value> {
    let mut changed = Map::new();
    if after.threads != before.threads {
        changed.insert("threads".to_owned(), json!(after.threads));
    }
    if after.batch != before.batch {
        changed.insert("batch".to_owned(), json!(after.batch));
    }
    if after.gpu_layers != before.gpu_layers {
        changed.insert("gpu_layers".to_owned(), json!(after.gpu_layers));
    }
    if after.kv_cache != before.kv_cache {
        changed.insert("kv_cache".to_owned(), json!(after.kv_cache));
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

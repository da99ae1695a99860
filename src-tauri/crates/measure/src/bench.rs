//! How fast a tier is: the request for a measurement and its report, the bodies of `/tierbar/v1/tiers/{id}/bench`.

use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use tierbar_core::{
    ModelId, TierId,
    config::{Choice, KvCache, Paging, TierConfig},
    worker::Memory,
};

/// The settings of a tier that decide its speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Settings {
    /// CPU threads; 0 lets the worker choose.
    pub threads: u16,
    pub batch: u32,
    /// The most layers on the GPU; `null` for as many as fit.
    pub gpu_layers: Option<u32>,
    pub kv_cache: KvCache,
}

impl Settings {
    /// Of a tier whose settings are settled.
    pub fn for_tier(tier: &TierConfig) -> Self {
        Self {
            threads: tier.threads,
            batch: tier.batch,
            gpu_layers: tier.gpu_layers,
            kv_cache: tier.kv_cache.fixed().unwrap_or_default(),
        }
    }

    /// Returns the tier with these settings.
    pub fn on(self, tier: TierConfig) -> TierConfig {
        TierConfig {
            threads: self.threads,
            batch: self.batch,
            gpu_layers: self.gpu_layers,
            kv_cache: Choice::Fixed(self.kv_cache),
            ..tier
        }
    }
}

/// What to measure. Fields left out have their default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BenchRequest {
    /// Tokens of context before those that are measured.
    pub depths: Vec<u32>,
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Tokens of the answer.
    pub answer_tokens: u32,
    pub runs: u32,
    /// Measure each way to run a model that is larger than memory, in place of the depths.
    pub paging: bool,
}

impl Default for BenchRequest {
    fn default() -> Self {
        Self {
            depths: vec![0, 512, 4096],
            prompt_tokens: 512,
            answer_tokens: 64,
            runs: 3,
            paging: false,
        }
    }
}

/// Beyond these a measurement takes hours or means nothing.
const MOST_DEPTHS: usize = 16;
const DEEPEST: u32 = 1 << 20;
const PROMPT: RangeInclusive<u32> = 16..=16_384;
/// At least two: the time of the first token belongs to the prompt.
const ANSWER: RangeInclusive<u32> = 2..=4096;
/// A median of fewer says nothing about noise.
const RUNS: RangeInclusive<u32> = 3..=50;

impl BenchRequest {
    /// # Errors
    /// What is wrong with the request, as a sentence without a period.
    pub fn check(&self) -> Result<(), String> {
        if self.depths.is_empty() || self.depths.len() > MOST_DEPTHS {
            return Err(format!(
                "`depths` has {} entries; 1 to {MOST_DEPTHS} can be measured",
                self.depths.len()
            ));
        }
        if let Some(depth) = self.depths.iter().find(|depth| **depth > DEEPEST) {
            return Err(format!("a depth of {depth} is beyond any context"));
        }
        check_range("prompt_tokens", self.prompt_tokens, &PROMPT)?;
        check_range("answer_tokens", self.answer_tokens, &ANSWER)?;
        check_range("runs", self.runs, &RUNS)
    }

    /// Returns why a depth cannot be measured in a context of this many tokens; `None` if it can.
    pub fn beyond(&self, depth: u32, context: u32) -> Option<String> {
        let needed = depth
            .saturating_add(self.prompt_tokens)
            .saturating_add(self.answer_tokens);
        (needed > context)
            .then(|| format!("needs a context of {needed} tokens, and the tier has {context}"))
    }
}

pub(crate) fn check_range(
    name: &str,
    value: u32,
    range: &RangeInclusive<u32>,
) -> Result<(), String> {
    if range.contains(&value) {
        return Ok(());
    }
    let (least, most) = (range.start(), range.end());
    Err(format!(
        "`{name}` is {value}; it must be between {least} and {most}"
    ))
}

/// A median of several runs, and the lowest and highest of them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Figure {
    pub median: f64,
    pub low: f64,
    pub high: f64,
}

impl Figure {
    /// Returns `None` without runs, or if one of them is not a number.
    pub fn from_runs(mut runs: Vec<f64>) -> Option<Self> {
        if runs.iter().any(|run| !run.is_finite()) {
            return None;
        }
        runs.sort_by(f64::total_cmp);
        let (low, high) = (*runs.first()?, *runs.last()?);
        let middle = runs.len() / 2;
        let median = if runs.len() % 2 == 1 {
            runs[middle]
        } else {
            f64::midpoint(runs[middle - 1], runs[middle])
        };
        Some(Self { median, low, high })
    }

    /// Returns the range of the runs as a fraction of their median.
    pub fn spread(&self) -> f64 {
        if self.median > 0.0 {
            (self.high - self.low) / self.median
        } else {
            0.0
        }
    }
}

/// The measured speed of one tier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct BenchReport {
    /// Tierbar's.
    pub version: String,
    /// RFC 3339, in UTC.
    pub taken_at: String,
    pub tier: TierId,
    pub model: ModelId,
    pub context_tokens: u32,
    pub settings: Settings,
    /// The threads that computed, whether configured or chosen by the worker.
    pub threads_used: u16,
    pub prompt_tokens: u32,
    pub answer_tokens: u32,
    pub runs: u32,
    pub rows: Vec<BenchRow>,
    /// The ways to run a model that is larger than memory, if they were measured.
    #[serde(default)]
    pub paging: Vec<PagingRow>,
    /// From the worker's start until it could answer; `null` if it was loaded already.
    pub load_ms: Option<f64>,
    pub memory: BenchMemory,
    /// Runs that were repeated because the tier did other work at the same time.
    pub disturbed: u32,
}

/// The measurements at one context depth.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct BenchRow {
    /// Tokens in the cache before the prompt.
    pub depth: u32,
    /// Prefill in tokens per second.
    pub prefill: Option<Figure>,
    /// Decode in tokens per second, without the first token: its time belongs to the prompt.
    pub decode: Option<Figure>,
    /// Time to first token, in milliseconds.
    pub first_token_ms: Option<Figure>,
    /// Why there are no figures.
    pub skipped: Option<String>,
}

/// The measurements of one way to run a model that is larger than memory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PagingRow {
    pub paging: Paging,
    /// Prefill and decode in tokens per second.
    pub prefill: Option<Figure>,
    pub decode: Option<Figure>,
    /// Of decoding: the part of what was used that was in memory, from 0 to 1, and what a token read and waited.
    pub hit_rate: Option<f64>,
    pub read_bytes_per_token: Option<f64>,
    pub wait_ms_per_token: Option<f64>,
    /// Why there are no figures.
    pub skipped: Option<String>,
}

impl PagingRow {
    pub fn skipped(paging: Paging, why: String) -> Self {
        Self {
            paging,
            skipped: Some(why),
            ..Self::default()
        }
    }
}

impl BenchRow {
    pub fn skipped(depth: u32, why: String) -> Self {
        Self {
            depth,
            skipped: Some(why),
            ..Self::default()
        }
    }
}

/// What the worker had allocated by the engine's own figures, and what its end would free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct BenchMemory {
    pub weights_mapped_bytes: u64,
    pub weights_bytes: u64,
    pub kv_bytes: u64,
    pub compute_bytes: u64,
    pub footprint_bytes: Option<u64>,
}

impl BenchMemory {
    pub fn new(memory: Memory, footprint_bytes: Option<u64>) -> Self {
        Self {
            weights_mapped_bytes: memory.weights_mapped_bytes,
            weights_bytes: memory
                .weights_bytes
                .saturating_add(memory.weights_device_bytes),
            kv_bytes: memory.kv_bytes,
            compute_bytes: memory.compute_bytes,
            footprint_bytes,
        }
    }

    /// Returns the sum of what the engine has allocated.
    pub fn total_bytes(&self) -> u64 {
        self.weights_mapped_bytes
            .saturating_add(self.weights_bytes)
            .saturating_add(self.kv_bytes)
            .saturating_add(self.compute_bytes)
    }
}

/// The progress of a measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Progress {
    pub done: u32,
    /// May grow while a measurement finds more to try.
    pub of: u32,
    /// What is being done, such as `depth 4096: measuring prefill of 512 tokens`.
    pub doing: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_have_a_median_and_a_spread() {
        let odd = Figure::from_runs(vec![3.0, 1.0, 2.0]).unwrap();
        assert_eq!((odd.median, odd.low, odd.high), (2.0, 1.0, 3.0));
        assert!((odd.spread() - 1.0).abs() < 1e-9);
        assert_eq!(
            Figure::from_runs(vec![1.0, 4.0, 2.0, 3.0]).unwrap().median,
            2.5
        );
        assert_eq!(Figure::from_runs(Vec::new()), None);
        assert_eq!(Figure::from_runs(vec![1.0, f64::NAN]), None);
    }

    #[test]
    fn an_impossible_measurement_is_refused_with_its_field() {
        let usual = BenchRequest::default();
        assert_eq!(usual.check(), Ok(()));
        for (request, part) in [
            (
                BenchRequest {
                    depths: Vec::new(),
                    ..usual.clone()
                },
                "`depths` has 0",
            ),
            (
                BenchRequest {
                    depths: vec![0; 17],
                    ..usual.clone()
                },
                "`depths` has 17",
            ),
            (
                BenchRequest {
                    depths: vec![u32::MAX],
                    ..usual.clone()
                },
                "beyond any context",
            ),
            (
                BenchRequest {
                    prompt_tokens: 0,
                    ..usual.clone()
                },
                "`prompt_tokens` is 0",
            ),
            (
                BenchRequest {
                    answer_tokens: 1,
                    ..usual.clone()
                },
                "`answer_tokens` is 1",
            ),
            (
                BenchRequest {
                    runs: 2,
                    ..usual.clone()
                },
                "`runs` is 2",
            ),
        ] {
            let wrong = request.check().unwrap_err();
            assert!(wrong.contains(part), "{wrong}");
        }
    }

    #[test]
    fn a_depth_needs_room_for_prompt_and_answer() {
        let request = BenchRequest::default();
        assert_eq!(request.beyond(512, 512 + 512 + 64), None);
        let why = request.beyond(512, 512 + 512 + 63).unwrap();
        assert_eq!(why, "needs a context of 1088 tokens, and the tier has 1087");
        assert!(request.beyond(u32::MAX, 4096).is_some());
    }

    #[test]
    fn settings_survive_a_round_trip_through_a_tier() {
        let settings = Settings {
            threads: 3,
            batch: 256,
            gpu_layers: Some(0),
            kv_cache: KvCache::Q8_0,
        };
        let tier = settings.on(TierConfig {
            model: "m".to_owned(),
            context: Choice::Fixed(1024),
            ..TierConfig::default()
        });
        assert_eq!((tier.model.as_str(), tier.context_tokens()), ("m", 1024));
        assert_eq!(Settings::for_tier(&tier), settings);
    }
}

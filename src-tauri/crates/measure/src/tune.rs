//! The fastest settings of a tier: what to try in which order, and what to keep. The bodies of
//! `/tierbar/v1/tiers/{id}/tune`.
//!
//! The measure is the time of one request: a given prompt and answer at one depth. One setting is varied at a time and its
//! best value is kept for the next, since all combinations would take hours. At the end the result is measured once more
//! beside the tier's own settings, so that a machine that became warm or busy meanwhile decides nothing. A change counts
//! only if it gains more than [`LEAST_GAIN`] and more than the noise of the runs.

mod search;
mod words;

pub use search::{CandidateMeasurement, Limits, Search};

use crate::bench::{BenchMemory, BenchRequest, Figure, Settings, check_range};
use serde::{Deserialize, Serialize};
use tierbar_core::{ModelId, TierId, config::TierConfig};

/// The smallest gain that people notice.
pub const LEAST_GAIN: f64 = 0.02;

/// What to try. A missing list is chosen for the machine; an empty one leaves its setting unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TuneRequest {
    pub threads: Option<Vec<u16>>,
    pub batch: Option<Vec<u32>>,
    pub gpu_layers: Option<Vec<u32>>,
    /// Whether another KV cache type may be chosen. All are measured and reported in any case: the smaller ones are less
    /// accurate, which speed does not show.
    pub kv_cache: bool,
    /// Do not change the configuration.
    pub dry_run: bool,
    pub depth: u32,
    pub prompt_tokens: u32,
    pub answer_tokens: u32,
    pub runs: u32,
}

impl Default for TuneRequest {
    fn default() -> Self {
        Self {
            threads: None,
            batch: None,
            gpu_layers: None,
            kv_cache: false,
            dry_run: false,
            depth: 512,
            // More than the default batch, or a larger one would make no difference.
            prompt_tokens: 1024,
            answer_tokens: 64,
            runs: 3,
        }
    }
}

/// The most candidates.
const MOST_CANDIDATES: usize = 32;
const MOST_THREADS: u16 = 1024;

impl TuneRequest {
    /// # Errors
    /// What is wrong with the request, as a sentence without a period.
    pub fn check(&self) -> Result<(), String> {
        self.measurement().check()?;
        let lengths = [
            self.threads.as_ref().map_or(0, Vec::len),
            self.batch.as_ref().map_or(0, Vec::len),
            self.gpu_layers.as_ref().map_or(0, Vec::len),
        ];
        if lengths.iter().any(|length| *length > MOST_CANDIDATES) {
            return Err(format!(
                "at most {MOST_CANDIDATES} values of a setting can be tried"
            ));
        }
        for threads in self.threads.iter().flatten() {
            check_range("threads", (*threads).into(), &(1..=MOST_THREADS.into()))?;
        }
        for batch in self.batch.iter().flatten() {
            check_range("batch", *batch, &TierConfig::BATCH)?;
        }
        Ok(())
    }

    /// Returns the measurement of each candidate.
    pub fn measurement(&self) -> BenchRequest {
        BenchRequest {
            depths: vec![self.depth],
            prompt_tokens: self.prompt_tokens,
            answer_tokens: self.answer_tokens,
            runs: self.runs,
            paging: false,
        }
    }

    /// Returns the request, reduced to fit a context of this many tokens.
    #[must_use]
    pub fn fitting(mut self, context: u32) -> Self {
        let most = context.saturating_sub(self.answer_tokens);
        self.prompt_tokens = self.prompt_tokens.min(most * 2 / 3).max(16);
        self.depth = self.depth.min(most.saturating_sub(self.prompt_tokens));
        self
    }
}

/// The setting that was varied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Knob {
    /// Nothing: the tier as it is configured.
    Start,
    GpuLayers,
    Threads,
    Batch,
    KvCache,
    /// Nothing: the first or the best settings, measured again.
    Check,
}

/// The outcome of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The reference for the others.
    Base,
    /// Faster than the best before it by more than the noise.
    Faster,
    NotFaster,
    /// Measured for information only.
    Told,
    /// It could not be loaded, or failed.
    Failed,
}

/// One candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TuneRow {
    pub knob: Knob,
    pub settings: Settings,
    pub outcome: Outcome,
    /// Why, as a sentence.
    pub reason: String,
    /// The time of the request, in milliseconds.
    pub request_ms: Option<Figure>,
    /// Prefill in tokens per second.
    pub prefill: Option<f64>,
    pub decode: Option<f64>,
    pub load_ms: Option<f64>,
    pub memory: Option<BenchMemory>,
}

/// The result, and the table that it is based on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TuneReport {
    /// Tierbar's.
    pub version: String,
    /// RFC 3339, in UTC.
    pub taken_at: String,
    pub tier: TierId,
    pub model: ModelId,
    pub context_tokens: u32,
    /// The request that was measured.
    pub depth: u32,
    pub prompt_tokens: u32,
    pub answer_tokens: u32,
    pub runs: u32,
    pub rows: Vec<TuneRow>,
    /// The settings before.
    pub before: Settings,
    pub after: Settings,
    /// The fraction of the time that is saved, such as 0.12; 0 if nothing is faster.
    pub gain: f64,
    /// Whether the configuration was changed.
    pub written: bool,
    /// The outcome in a sentence.
    pub summary: String,
    /// Runs that were repeated because the tier did other work at the same time.
    pub disturbed: u32,
}

#[cfg(test)]
mod tests;

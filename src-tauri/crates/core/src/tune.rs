//! Which settings a tier is fastest with: what to try in which order, and what of it to keep. The bodies of
//! `/tierbar/v1/tiers/{id}/tune`.
//!
//! The measure is the time of one request: so many tokens read and so many written at one depth. One setting is varied
//! at a time and the best of it goes into the next, since the full product would take hours. At the end what was found is
//! measured once more beside what the tier had, so that a machine that has become warm or busy meanwhile decides nothing.
//! A change counts only if it gains more than [`LEAST_GAIN`] and more than the runs differ among themselves.

mod search;
mod words;

pub use search::{Limits, Measured, Search};

use crate::{
    ModelId, TierId,
    bench::{BenchAsk, BenchMemory, Figure, Settings, within},
    config::TierConfig,
};
use serde::{Deserialize, Serialize};

/// Nobody notices less.
pub const LEAST_GAIN: f64 = 0.02;

/// What to try. Lists that are left out are chosen by the machine; an empty one leaves its setting alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TuneAsk {
    pub threads: Option<Vec<u16>>,
    pub batch: Option<Vec<u32>>,
    pub gpu_layers: Option<Vec<u32>>,
    /// Whether another KV cache type may be chosen. All are measured and told anyway: the smaller ones answer less
    /// exactly, which no clock sees.
    pub kv_cache: bool,
    /// Leave the configuration as it is.
    pub dry_run: bool,
    pub depth: u32,
    pub prompt_tokens: u32,
    pub answer_tokens: u32,
    pub runs: u32,
}

impl Default for TuneAsk {
    fn default() -> Self {
        Self {
            threads: None,
            batch: None,
            gpu_layers: None,
            kv_cache: false,
            dry_run: false,
            depth: 512,
            // More than the usual batch, or a larger one would make no difference.
            prompt_tokens: 1024,
            answer_tokens: 64,
            runs: 3,
        }
    }
}

/// More candidates than anybody waits for.
const MOST_CANDIDATES: usize = 32;
const MOST_THREADS: u16 = 1024;

impl TuneAsk {
    /// # Errors
    /// What is wrong with it, as a sentence without its end.
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
            within("threads", (*threads).into(), &(1..=MOST_THREADS.into()))?;
        }
        for batch in self.batch.iter().flatten() {
            within("batch", *batch, &TierConfig::BATCH)?;
        }
        Ok(())
    }

    /// What each candidate is measured by.
    #[must_use]
    pub fn measurement(&self) -> BenchAsk {
        BenchAsk {
            depths: vec![self.depth],
            prompt_tokens: self.prompt_tokens,
            answer_tokens: self.answer_tokens,
            runs: self.runs,
        }
    }

    /// The same, made small enough for a context of so many tokens.
    #[must_use]
    pub fn fitting(mut self, context: u32) -> Self {
        let most = context.saturating_sub(self.answer_tokens);
        self.prompt_tokens = self.prompt_tokens.min(most * 2 / 3).max(16);
        self.depth = self.depth.min(most.saturating_sub(self.prompt_tokens));
        self
    }
}

/// What was varied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum Knob {
    /// Nothing: the tier as it is configured.
    Start,
    GpuLayers,
    Threads,
    Batch,
    KvCache,
    /// Nothing: what the tier had, or what was found, once more.
    Check,
}

/// What became of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum Outcome {
    /// What the others are held against.
    Base,
    /// Faster than the best before it by more than the noise.
    Faster,
    NotFaster,
    /// Measured to be told, and not to be chosen.
    Told,
    /// It could not be loaded, or did not last.
    Failed,
}

/// One candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TuneRow {
    pub knob: Knob,
    pub settings: Settings,
    pub outcome: Outcome,
    /// Why, as a sentence.
    pub reason: String,
    /// The time of the request, in milliseconds.
    pub request_ms: Option<Figure>,
    /// Tokens per second, read and written.
    pub prefill: Option<f64>,
    pub decode: Option<f64>,
    pub load_ms: Option<f64>,
    pub memory: Option<BenchMemory>,
}

/// What was found, and the table that decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
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
    /// What the tier had, and what is best.
    pub before: Settings,
    pub after: Settings,
    /// The part of the time that is saved, such as 0.12; 0 if nothing better was found.
    pub gain: f64,
    /// Whether the configuration was changed.
    pub written: bool,
    /// The outcome in a sentence.
    pub summary: String,
    /// Runs that were made again, because the tier did other work beside them.
    pub disturbed: u32,
}

#[cfg(test)]
mod tests;

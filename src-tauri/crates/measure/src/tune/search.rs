//! The search: coordinate descent over the settings that the machine supports.

use super::{Knob, LEAST_GAIN, Outcome, TuneRequest, TuneRow, words};
use crate::bench::{BenchMemory, Figure, Settings};
use std::collections::VecDeque;
use tierbar_core::config::KvCache;

/// Batches that may be faster than the default on some machine.
const BATCHES: [u32; 5] = [128, 256, 512, 1024, 2048];

/// What can be tried on this machine, with this model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Cores of the machine. The search never takes all of them by itself.
    pub cores: u16,
    /// Layers that fit on the GPU, with the output as one; `None` without a GPU.
    pub gpu_layers: Option<u32>,
    /// Whether that is the whole model.
    pub gpu_holds_all: bool,
}

/// The measurement of a candidate.
#[derive(Debug, Clone, PartialEq)]
pub struct CandidateMeasurement {
    pub request_ms: Figure,
    pub prefill: f64,
    pub decode: f64,
    pub threads_used: u16,
    pub load_ms: Option<f64>,
    pub memory: BenchMemory,
}

#[derive(Debug, Clone)]
struct Candidate {
    settings: Settings,
    measured: CandidateMeasurement,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Start,
    Varying(usize),
    CheckBefore,
    CheckAfter,
    Over,
}

/// The order of the settings: the placement of the model affects all others.
const ORDER: [Knob; 4] = [Knob::GpuLayers, Knob::Threads, Knob::Batch, Knob::KvCache];

/// Yields one candidate after another, and records the result of each.
#[derive(Debug)]
pub struct Search {
    request: TuneRequest,
    limits: Limits,
    before: Settings,
    stage: Stage,
    /// The candidates left in this stage.
    waiting: VecDeque<Settings>,
    /// The last candidate, until its result is recorded.
    pending: Option<(Knob, Settings)>,
    best: Option<Candidate>,
    /// The first of the two final measurements.
    checked: Option<CandidateMeasurement>,
    rows: Vec<TuneRow>,
    gain: f64,
}

impl Search {
    pub fn new(request: TuneRequest, before: Settings, limits: Limits) -> Self {
        Self {
            request,
            limits,
            before,
            stage: Stage::Start,
            waiting: VecDeque::from([before]),
            pending: None,
            best: None,
            checked: None,
            rows: Vec::new(),
            gain: 0.0,
        }
    }

    /// Returns the next candidate; `None` when the search is over, or the tier cannot be measured with its own settings.
    pub fn next_candidate(&mut self) -> Option<(Knob, Settings)> {
        loop {
            if let Some(settings) = self.waiting.pop_front() {
                let candidate = (self.knob(), settings);
                self.pending = Some(candidate);
                return Some(candidate);
            }
            self.stage = match self.stage {
                Stage::Over => return None,
                Stage::Start if self.best.is_none() => Stage::Over,
                Stage::Start => Stage::Varying(0),
                Stage::Varying(at) if at + 1 < ORDER.len() => Stage::Varying(at + 1),
                Stage::Varying(_) if self.found() != self.before => Stage::CheckBefore,
                Stage::CheckBefore if self.checked.is_some() => Stage::CheckAfter,
                Stage::Varying(_) | Stage::CheckBefore | Stage::CheckAfter => Stage::Over,
            };
            self.waiting = self.of_stage();
        }
    }

    /// Records the measurement of the last candidate, or why it failed.
    pub fn record(&mut self, result: Result<CandidateMeasurement, String>) {
        let Some((knob, settings)) = self.pending.take() else {
            return;
        };
        let (outcome, reason) = match &result {
            Err(why) => (Outcome::Failed, why.clone()),
            Ok(measured) => self.judge(settings, measured),
        };
        let measured = result.ok();
        self.rows.push(TuneRow {
            knob,
            settings,
            outcome,
            reason,
            request_ms: measured.as_ref().map(|measured| measured.request_ms),
            prefill: measured.as_ref().map(|measured| measured.prefill),
            decode: measured.as_ref().map(|measured| measured.decode),
            load_ms: measured.as_ref().and_then(|measured| measured.load_ms),
            memory: measured.as_ref().map(|measured| measured.memory),
        });
    }

    fn judge(&mut self, settings: Settings, measured: &CandidateMeasurement) -> (Outcome, String) {
        let candidate = || Candidate {
            settings,
            measured: measured.clone(),
        };
        let compare = |before: &CandidateMeasurement| {
            let (gain, noise) = gain(&before.request_ms, &measured.request_ms);
            let outcome = match gain > noise {
                true => Outcome::Faster,
                false => Outcome::NotFaster,
            };
            (outcome, gain, words::describe_gain(gain, noise))
        };
        match (&self.best, self.stage) {
            (_, Stage::CheckBefore) => {
                self.checked = Some(measured.clone());
                (Outcome::Base, words::BEFORE_AGAIN.to_owned())
            }
            (_, Stage::CheckAfter) => {
                let Some(before) = &self.checked else {
                    return (Outcome::NotFaster, String::new());
                };
                let (outcome, gain, time) = compare(before);
                if outcome == Outcome::Faster {
                    self.gain = gain;
                }
                (outcome, time)
            }
            (None, _) => {
                self.best = Some(candidate());
                (Outcome::Base, words::AS_CONFIGURED.to_owned())
            }
            (Some(best), _) => {
                let (outcome, _, time) = compare(&best.measured);
                if self.only_reported() {
                    let words = words::difference(&time, &best.measured.memory, &measured.memory);
                    return (Outcome::Told, words);
                }
                if outcome == Outcome::Faster {
                    self.best = Some(candidate());
                }
                (outcome, time)
            }
        }
    }

    fn only_reported(&self) -> bool {
        self.knob() == Knob::KvCache && !self.request.kv_cache
    }

    fn knob(&self) -> Knob {
        match self.stage {
            Stage::Start => Knob::Start,
            Stage::Varying(at) => ORDER[at],
            Stage::CheckBefore | Stage::CheckAfter | Stage::Over => Knob::Check,
        }
    }

    fn found(&self) -> Settings {
        self.best.as_ref().map_or(self.before, |best| best.settings)
    }

    /// Returns the candidates of this stage.
    fn of_stage(&self) -> VecDeque<Settings> {
        let best = self.found();
        let each = |settings: Vec<Settings>| {
            let mut fresh = VecDeque::new();
            for settings in settings {
                if settings != best && !fresh.contains(&settings) {
                    fresh.push_back(settings);
                }
            }
            fresh
        };
        match self.stage {
            Stage::CheckBefore => VecDeque::from([self.before]),
            Stage::CheckAfter => VecDeque::from([best]),
            Stage::Varying(at) => each(match ORDER[at] {
                Knob::GpuLayers => {
                    let some = |layers| Settings {
                        gpu_layers: layers,
                        ..best
                    };
                    self.gpu_layers().into_iter().map(some).collect()
                }
                Knob::Threads => {
                    let some = |threads| Settings { threads, ..best };
                    self.threads().into_iter().map(some).collect()
                }
                Knob::Batch => {
                    let some = |batch| Settings { batch, ..best };
                    self.batches().into_iter().map(some).collect()
                }
                _ => [KvCache::F16, KvCache::Q8_0, KvCache::Q4_0]
                    .map(|kv_cache| Settings { kv_cache, ..best })
                    .into(),
            }),
            Stage::Start | Stage::Over => VecDeque::new(),
        }
    }

    fn gpu_layers(&self) -> Vec<Option<u32>> {
        let Some(fitting) = self.limits.gpu_layers else {
            return Vec::new();
        };
        match &self.request.gpu_layers {
            Some(requested) => requested.iter().copied().map(Some).collect(),
            None => vec![None, Some(fitting / 2), Some(0)],
        }
    }

    /// Returns thread counts around the current one, but never all cores: the desktop keeps one.
    fn threads(&self) -> Vec<u16> {
        if let Some(requested) = &self.request.threads {
            let now = self.best.as_ref().map(|best| best.measured.threads_used);
            let others = requested.iter().filter(|threads| Some(**threads) != now);
            return others.copied().collect();
        }
        // Threads of the CPU do not speed up a model on the GPU.
        let on_gpu = self.limits.gpu_holds_all && self.found().gpu_layers.is_none();
        let Some(best) = self.best.as_ref().filter(|_| !on_gpu) else {
            return Vec::new();
        };
        let now = best.measured.threads_used;
        let most = self.limits.cores.saturating_sub(1).max(1);
        let mut near: Vec<u16> = [
            now.saturating_sub(1),
            now.saturating_add(1),
            now / 2,
            now.saturating_add(2),
            most,
        ]
        .into_iter()
        .filter(|threads| (1..=most).contains(threads) && *threads != now)
        .collect();
        near.sort_unstable();
        near.dedup();
        near
    }

    /// Returns batches up to the prompt's length; a larger one would make no difference.
    fn batches(&self) -> Vec<u32> {
        match &self.request.batch {
            Some(requested) => requested.clone(),
            None => BATCHES
                .into_iter()
                .filter(|batch| *batch <= self.request.prompt_tokens)
                .collect(),
        }
    }

    /// Returns the last row of the table.
    pub fn last_row(&self) -> Option<&TuneRow> {
        self.rows.last()
    }

    /// Estimates the number of candidates, to show progress.
    pub fn expected(&self) -> usize {
        let stages_left = match self.stage {
            Stage::Start => ORDER.len(),
            Stage::Varying(at) => ORDER.len() - 1 - at,
            _ => 0,
        };
        self.rows.len() + usize::from(self.pending.is_some()) + self.waiting.len() + stages_left * 2
    }

    /// Returns the table, the best settings, and the fraction of the time that they save. Settings whose gain was not
    /// confirmed are not the best.
    pub fn finish(self) -> (Vec<TuneRow>, Settings, f64) {
        let after = if self.gain > 0.0 {
            self.found()
        } else {
            self.before
        };
        (self.rows, after, self.gain)
    }
}

/// Returns the fraction of the time that is saved, negative if it takes longer, and how much of it may be noise.
fn gain(before: &Figure, after: &Figure) -> (f64, f64) {
    let gain = if before.median > 0.0 {
        1.0 - after.median / before.median
    } else {
        0.0
    };
    let noise = f64::midpoint(before.spread(), after.spread());
    (gain, noise.max(LEAST_GAIN))
}

//! The search: coordinate descent over what the machine can do, as a state that is told each outcome.

use super::{Knob, LEAST_GAIN, Outcome, TuneAsk, TuneRow, words};
use crate::{
    bench::{BenchMemory, Figure, Settings},
    config::KvCache,
};
use std::collections::VecDeque;

/// Batches that may be faster than the usual one, on some machine.
const BATCHES: [u32; 5] = [128, 256, 512, 1024, 2048];

/// What can be tried on this machine, with this model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Cores of the machine. The search never takes all of them by itself.
    pub cores: u16,
    /// Layers that the GPU holds if it may hold what fits, with the output as one; `None` without a GPU.
    pub gpu_layers: Option<u32>,
    /// Whether those are the whole model.
    pub gpu_holds_all: bool,
}

/// What a candidate did.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
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
    measured: Measured,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Start,
    Varying(usize),
    CheckBefore,
    CheckAfter,
    Over,
}

/// In this order: where the model lies decides what the rest is worth.
const ORDER: [Knob; 4] = [Knob::GpuLayers, Knob::Threads, Knob::Batch, Knob::KvCache];

/// Asks for one candidate after another, and is told how each did.
#[derive(Debug)]
pub struct Search {
    ask: TuneAsk,
    limits: Limits,
    before: Settings,
    stage: Stage,
    /// What is left to try of this stage.
    waiting: VecDeque<Settings>,
    /// What was asked for last, and has not been told of.
    pending: Option<(Knob, Settings)>,
    best: Option<Candidate>,
    /// The first of the two that are held against each other at the end.
    checked: Option<Measured>,
    rows: Vec<TuneRow>,
    gain: f64,
}

impl Search {
    #[must_use]
    pub fn new(ask: TuneAsk, before: Settings, limits: Limits) -> Self {
        Self {
            ask,
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

    /// The next candidate; `None` when all is decided, or when the tier cannot be measured as it is.
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

    /// How the last candidate did, or why it could not be measured.
    pub fn record(&mut self, result: Result<Measured, String>) {
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

    fn judge(&mut self, settings: Settings, measured: &Measured) -> (Outcome, String) {
        let candidate = || Candidate {
            settings,
            measured: measured.clone(),
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
                let (gain, noise) = gain(&before.request_ms, &measured.request_ms);
                if gain > noise {
                    self.gain = gain;
                    (Outcome::Faster, words::faster(gain))
                } else {
                    (Outcome::NotFaster, words::not_faster(gain, noise))
                }
            }
            (None, _) => {
                self.best = Some(candidate());
                (Outcome::Base, words::AS_CONFIGURED.to_owned())
            }
            (Some(best), _) => {
                let (gain, noise) = gain(&best.measured.request_ms, &measured.request_ms);
                if self.only_reported() {
                    let words =
                        words::difference(gain, noise, &best.measured.memory, &measured.memory);
                    (Outcome::Told, words)
                } else if gain > noise {
                    self.best = Some(candidate());
                    (Outcome::Faster, words::faster(gain))
                } else {
                    (Outcome::NotFaster, words::not_faster(gain, noise))
                }
            }
        }
    }

    fn only_reported(&self) -> bool {
        self.knob() == Knob::KvCache && !self.ask.kv_cache
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

    /// What this stage tries.
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
        match &self.ask.gpu_layers {
            Some(asked) => asked.iter().copied().map(Some).collect(),
            None => vec![None, Some(fitting / 2), Some(0)],
        }
    }

    /// Around what computes now. Never all cores: the desktop keeps one.
    fn threads(&self) -> Vec<u16> {
        if let Some(asked) = &self.ask.threads {
            let now = self.best.as_ref().map(|best| best.measured.threads_used);
            let others = asked.iter().filter(|threads| Some(**threads) != now);
            return others.copied().collect();
        }
        // What the GPU holds, the CPU's threads do not speed up.
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

    /// A batch that is larger than the prompt would be measured in vain.
    fn batches(&self) -> Vec<u32> {
        match &self.ask.batch {
            Some(asked) => asked.clone(),
            None => BATCHES
                .into_iter()
                .filter(|batch| *batch <= self.ask.prompt_tokens)
                .collect(),
        }
    }

    /// The line of the table that was told last.
    #[must_use]
    pub fn last_row(&self) -> Option<&TuneRow> {
        self.rows.last()
    }

    /// How many candidates there will be, as far as is known; a guess that only tells how long it takes.
    #[must_use]
    pub fn expected(&self) -> usize {
        let stages_left = match self.stage {
            Stage::Start => ORDER.len(),
            Stage::Varying(at) => ORDER.len() - 1 - at,
            _ => 0,
        };
        self.rows.len() + usize::from(self.pending.is_some()) + self.waiting.len() + stages_left * 2
    }

    /// The table, what is best, and the part of the time that it saves. What was found but did not hold when it was
    /// measured once more is not it.
    #[must_use]
    pub fn finish(self) -> (Vec<TuneRow>, Settings, f64) {
        let after = if self.gain > 0.0 {
            self.found()
        } else {
            self.before
        };
        (self.rows, after, self.gain)
    }
}

/// The part of the time that is saved, negative if it takes longer, and how much of it may be chance.
fn gain(before: &Figure, after: &Figure) -> (f64, f64) {
    let gain = if before.median > 0.0 {
        1.0 - after.median / before.median
    } else {
        0.0
    };
    let noise = f64::midpoint(before.spread(), after.spread());
    (gain, noise.max(LEAST_GAIN))
}

//! Speculative decoding: drafted tokens are verified in one evaluation, which pays if several tokens cost little more than
//! one.
//!
//! A draft never changes the answer: the sampler chooses each token from the model's own logits, and a draft that differs is
//! removed. A draft only affects how many tokens one evaluation gives, so that is measured, and drafting pauses if it
//! loses.

use super::{GenerationBatch, RunningTask, evaluation::StepShare, shares::PrefillPace};
use crate::llama::{DraftModel, Token};
use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

/// The most tokens in a draft.
pub(crate) const MOST: u32 = 8;
/// The most tokens that a draft model prefills in a step.
const CATCH_UP: usize = 512;
/// The number of tokens that must occur earlier in the text for what followed them to be drafted.
const KEY: usize = 3;
/// The number of steps that measure the time without a draft.
const PLAIN: u32 = 4;
/// The number of steps with a draft before they are judged.
const TRIAL: u32 = 8;
/// Tokens without drafts after a losing trial; doubles with each, so many times.
const REST: u32 = 64;
const MOST_DOUBLINGS: u32 = 6;

#[derive(Debug)]
pub(crate) enum Drafter {
    /// What followed the last tokens where they occur earlier in the text (prompt lookup decoding).
    Lookup,
    /// A smaller model of the same vocabulary.
    Model {
        model: Box<DraftModel>,
        /// The large model waits for it.
        pace: PrefillPace,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DraftingEffort {
    /// Nothing significant.
    None,
    /// The draft model prefilled tokens.
    Reading,
    /// It drafted, though perhaps no token with enough probability.
    Guessing,
}

impl Drafter {
    pub(super) fn draft(&mut self, tokens: &[Token], most: usize) -> (Vec<Token>, DraftingEffort) {
        match self {
            Self::Lookup => {
                let found = look_up_draft(tokens, most);
                let effort = match found.is_empty() {
                    true => DraftingEffort::None,
                    false => DraftingEffort::Guessing,
                };
                (found, effort)
            }
            Self::Model { model, pace } => {
                let began = Instant::now();
                if model.is_behind(tokens) {
                    let read = model.read_on(tokens, pace.chunk(CATCH_UP));
                    pace.observe(read, began.elapsed());
                    return (Vec::new(), DraftingEffort::Reading);
                }
                (model.draft(tokens, most), DraftingEffort::Guessing)
            }
        }
    }
}

fn look_up_draft(tokens: &[Token], most: usize) -> Vec<Token> {
    let Some(start) = tokens.len().checked_sub(KEY) else {
        return Vec::new();
    };
    let key = &tokens[start..];
    // The latest occurrence is the best predictor.
    let found = tokens[..tokens.len() - 1]
        .windows(KEY)
        .rposition(|window| window == key);
    found.map_or_else(Vec::new, |at| {
        let next = at + KEY;
        tokens[next..tokens.len().min(next + most)].to_vec()
    })
}

/// Measures whether drafting pays, by the time per token with and without.
#[derive(Debug, Default)]
pub(super) struct DraftingGain {
    plain_seconds: RunningMean,
    drafted_seconds: f64,
    drafted_tokens: usize,
    trials: u32,
    rest: u32,
    /// Losing trials in a row.
    losses: u32,
}

/// A mean over the last steps.
#[derive(Debug, Default)]
struct RunningMean {
    value: f64,
    count: u32,
}

impl RunningMean {
    fn add(&mut self, value: f64) {
        self.count = self.count.saturating_add(1);
        // The first steps have equal weight, later about the last sixteen.
        let weight = 1.0 / f64::from(self.count.min(16));
        self.value += (value - self.value) * weight;
    }
}

impl DraftingGain {
    /// Returns whether to draft for the next step.
    pub(super) fn pays(&mut self) -> bool {
        if self.rest > 0 {
            self.rest -= 1;
            return false;
        }
        self.plain_seconds.count >= PLAIN
    }

    pub(super) fn rests(&self) -> bool {
        self.rest > 0
    }

    /// Records a step without a draft.
    pub(super) fn plain(&mut self, took: Duration) {
        self.plain_seconds.add(took.as_secs_f64());
    }

    /// Records a step with a draft, including the time for drafting.
    pub(super) fn drafted(&mut self, tokens: usize, took: Duration) {
        self.drafted_seconds += took.as_secs_f64();
        self.drafted_tokens += tokens;
        self.trials += 1;
        if self.trials < TRIAL {
            return;
        }
        let each = self.drafted_seconds / self.drafted_tokens.max(1) as f64;
        if each < self.plain_seconds.value {
            self.losses = 0;
        } else {
            self.rest = REST << self.losses.min(MOST_DOUBLINGS);
            self.losses += 1;
        }
        (self.drafted_seconds, self.drafted_tokens, self.trials) = (0.0, 0, 0);
    }
}

impl GenerationBatch<'_> {
    /// Drafts for the only stream.
    pub(super) fn draft(&mut self, at: usize) -> (Vec<Token>, DraftingEffort) {
        let nothing = (Vec::new(), DraftingEffort::None);
        let RunningTask { slot, task } = &self.running[at];
        let Some(drafter) = &mut self.drafter else {
            return nothing;
        };
        // A draft must be removable again, and stand-ins of images cannot be drafted from.
        if task.is_reading() || task.has_media() || self.model.is_recurrent() || !self.gain.pays() {
            return nothing;
        }
        let total = self.slots.held(*slot) + 2;
        let most = (MOST as usize)
            .min(self.slots.context.batch - 1)
            .min(self.slots.capacity().saturating_sub(total))
            .min(task.left().saturating_sub(1));
        if most == 0 || !self.slots.has_room(most + 1) {
            return nothing;
        }
        drafter.draft(&task.tokens, most)
    }

    /// Learns from a step of one stream whether drafting pays.
    pub(super) fn judge(&mut self, shares: &[StepShare], given: usize, took: Duration) {
        let [share] = shares else { return };
        if self.drafter.is_none() || share.tokens > 1 || !share.last {
            return;
        }
        match share.effort {
            DraftingEffort::None => self.gain.plain(took),
            // One-time prefill of the draft model is not part of a draft's cost.
            DraftingEffort::Reading => {}
            DraftingEffort::Guessing => {
                self.gain.drafted(given, took);
                let rests = &self.generations.drafting_rests;
                rests.store(self.gain.rests(), Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookup_drafts_what_followed_earlier() {
        let text = [1, 2, 3, 4, 5, 9, 2, 3, 4];
        assert_eq!(look_up_draft(&text, 8), [5, 9, 2, 3, 4]);
        assert_eq!(look_up_draft(&text, 2), [5, 9]);
        assert_eq!(look_up_draft(&[1, 2, 3, 7, 1, 2, 3, 8, 1, 2, 3], 1), [8]);
        assert_eq!(look_up_draft(&[1, 1, 1, 1], 3), [1]);
        for none in [&[][..], &[1, 2], &[1, 2, 3], &[1, 2, 3, 4]] {
            assert!(look_up_draft(none, 8).is_empty(), "{none:?}");
        }
    }

    fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    fn measured() -> DraftingGain {
        let mut gain = DraftingGain::default();
        for _ in 0..PLAIN {
            assert!(!gain.pays());
            gain.plain(ms(10));
        }
        gain
    }

    #[test]
    fn losing_drafts_pause_longer_each_time() {
        let mut gain = measured();
        for _ in 0..10 * TRIAL {
            assert!(gain.pays());
            gain.drafted(3, ms(20));
        }
        let mut rests = Vec::new();
        for _ in 0..8 {
            while gain.pays() {
                gain.drafted(1, ms(20));
            }
            let mut rest = 1;
            while gain.rests() {
                gain.pays();
                rest += 1;
            }
            rests.push(rest);
        }
        assert_eq!(rests, [64, 128, 256, 512, 1024, 2048, 4096, 4096]);
        while gain.pays() && !gain.rests() {
            gain.drafted(4, ms(10));
            if gain.trials == 0 {
                break;
            }
        }
        assert_eq!(gain.losses, 0);
    }
}

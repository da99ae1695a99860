//! Whether a draft pays, decided while answering, from what was measured: pure, and without a clock.
//!
//! Time is counted in steps: what an evaluation of one token takes in this answer.
//!
//! - Whether earlier text predicts the next token is counted for each token, also without a draft, by how many tokens before it
//!   match. So prompt lookup needs no trial: it begins once it would have paid.
//! - What an evaluation of several tokens takes is known from the last ones. Before the first, it is assumed to take little.
//! - A draft model is tried for some steps, and again from time to time.
//!
//! Each draft may lose only what its [`Budget`] has: a hundredth of all steps, what drafts have saved before, and at the start of a
//! worker two steps for prompt lookup, and 16 for a draft model. A draft that is only evaluated to compare logits takes nothing of it: two
//! are, once for each 256 tokens of the cache, which is about a hundredth of the steps there.

use super::{LEAST, MOST};
use std::time::Duration;
use tierbar_chats::Speculation;

/// The lengths of drafts of earlier text.
const LENGTHS: [usize; 2] = [LEAST as usize, MOST as usize];
/// The steps without a draft that an answer begins with, and the most drafts until the next one: they measure the time of a step.
const PLAIN: u32 = 4;
const MOST_DRAFTS: u32 = 32;
/// What a token of a draft adds to an evaluation as long as that is unknown, in steps.
const ASSUMED: f64 = 0.125;
/// After this many steps without a draft of its length, what such an evaluation takes is measured anew: the machine may have been
/// busy.
const FORGOTTEN: u32 = 1024;
/// How many times as fast a draft must be to be evaluated.
const WORTH: f64 = 1.1;
/// The part of all steps that drafts may lose.
const PART: f64 = 0.01;
/// Classes of matches: the most matching tokens, and the assumed chance that the next one is right.
const MATCHES: [(usize, f64); 4] = [(4, 0.4), (8, 0.6), (16, 0.75), (usize::MAX, 0.9)];
/// The most tokens of a match that are counted.
pub(super) const LONGEST_MATCH: usize = MATCHES[2].0 + 1;
/// The steps of a draft model's trial, and what its budget must have for one.
const TRIAL: u32 = 8;
const TRIAL_BUDGET: f64 = 16.0;
/// What a draft model's prefill of a token is assumed to take, in steps, and how many tokens it prefills to measure that.
const ASSUMED_PREFILL: f64 = 0.1;
const MEASURED_PREFILL: usize = 128;

/// A mean over about the last sixteen values.
#[derive(Debug, Clone, Copy, Default)]
struct RunningMean {
    value: f64,
    count: u32,
}

impl RunningMean {
    fn add(&mut self, value: f64) {
        self.count = self.count.saturating_add(1);
        self.value += (value - self.value) / f64::from(self.count.min(16));
    }

    fn get(&self) -> Option<f64> {
        (self.count > 0).then_some(self.value)
    }
}

/// Steps that may be lost.
#[derive(Debug)]
struct Budget {
    steps: f64,
    most: f64,
}

impl Budget {
    fn covers(&self, steps: f64) -> bool {
        self.steps >= steps
    }

    fn add(&mut self, steps: f64) {
        self.steps = (self.steps + steps).min(self.most);
    }
}

/// What predicted the tokens of a draft.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum DraftSource {
    #[default]
    None,
    /// Earlier text.
    Lookup,
    /// A draft model, perhaps of no token with enough probability.
    Model,
    /// The draft model prefilled so many tokens and predicted none.
    ModelPrefill(usize),
    /// A draft was evaluated only to compare logits.
    Check,
}

/// A step with the answer's next tokens, as the policy sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct DraftedStep {
    pub(super) source: DraftSource,
    /// Drafted tokens, and the tokens that the step gave.
    pub(super) drafted: usize,
    pub(super) given: usize,
    /// With the time of the draft.
    pub(super) took: Duration,
}

/// What an answer has shown of its drafts so far.
#[derive(Debug)]
pub(in crate::generate) struct AnswerDrafts {
    /// The seconds of a step.
    plain: RunningMean,
    drafts_since_plain: u32,
    /// For each class of matches, how often the next token was right, and the weight of that.
    chances: [(f64, f64); MATCHES.len()],
    drafted: usize,
    accepted: usize,
    by_model: usize,
    saved_seconds: f64,
    /// Whether the last draft that could have been made was not, since it would not have paid, and whether one ever was not.
    pub(super) rests: bool,
    has_rested: bool,
}

impl Default for AnswerDrafts {
    fn default() -> Self {
        Self {
            plain: RunningMean::default(),
            drafts_since_plain: 0,
            chances: MATCHES.map(|(_, chance)| (chance, 2.0)),
            drafted: 0,
            accepted: 0,
            by_model: 0,
            saved_seconds: 0.0,
            rests: false,
            has_rested: false,
        }
    }
}

impl AnswerDrafts {
    /// Returns whether the time of a step is known well enough for a draft.
    pub(super) fn is_measured(&self) -> bool {
        self.plain.count >= PLAIN && self.drafts_since_plain < MOST_DRAFTS
    }

    pub(super) fn note_rest(&mut self, rests: bool) {
        self.rests = rests;
        self.has_rested |= rests;
    }

    /// Records that there were no drafts since they might have changed the answer.
    pub(super) fn note_difference(&mut self) {
        self.has_rested = true;
    }

    /// Records that after so many matching tokens, `right` of the next ones were as before, and whether another one followed.
    pub(super) fn note_match(&mut self, matched: usize, right: usize, wrong: bool) {
        for place in 0..right + usize::from(wrong) {
            let (chance, weight) = &mut self.chances[class_of(matched + place)];
            *weight = (*weight + 1.0).min(32.0);
            let was_right = if place < right { 1.0 } else { 0.0 };
            *chance += (was_right - *chance) / *weight;
        }
    }

    /// Returns what to say of it, if anything was predicted.
    pub(in crate::generate) fn report(&self) -> Option<Speculation> {
        (self.drafted > 0 || self.has_rested).then_some(Speculation {
            drafted: self.drafted as u64,
            accepted: self.accepted as u64,
            by_model: self.by_model as u64,
            saved_ms: self.saved_seconds * 1e3,
            rested: self.has_rested,
        })
    }

    /// Returns the tokens that a step with such a draft is likely to give.
    fn likely_tokens(&self, matched: usize, length: usize) -> f64 {
        let (mut likely, mut tokens) = (1.0, 1.0);
        for place in 0..length {
            likely *= self.chances[class_of(matched + place)].0;
            tokens += likely;
        }
        tokens
    }
}

fn class_of(matched: usize) -> usize {
    let class = MATCHES.iter().position(|(most, _)| matched <= *most);
    class.unwrap_or(MATCHES.len() - 1)
}

/// What drafts cost on this machine, and what they may lose, over all answers of a worker.
#[derive(Debug)]
pub(in crate::generate) struct DraftingPolicy {
    /// The steps that an evaluation takes, for each length of a draft, and for how many steps there was none.
    evaluations: [(RunningMean, u32); LENGTHS.len()],
    lookup: Budget,
    model: Budget,
    /// The tokens and the time of a step with a draft of the model, and the time of its prefill of a token.
    model_tokens: RunningMean,
    model_steps: RunningMean,
    model_prefill: RunningMean,
    /// What is left of the draft model's trial.
    trial: u32,
}

impl Default for DraftingPolicy {
    fn default() -> Self {
        Self {
            evaluations: Default::default(),
            lookup: Budget {
                steps: 2.0,
                most: 4.0,
            },
            model: Budget {
                steps: TRIAL_BUDGET,
                most: 16.0 * TRIAL_BUDGET,
            },
            model_tokens: RunningMean::default(),
            model_steps: RunningMean::default(),
            model_prefill: RunningMean::default(),
            trial: 0,
        }
    }
}

impl DraftingPolicy {
    /// Returns how many tokens to draft from earlier text, of which this many match: 0 if it does not pay.
    pub(super) fn lookup_length(
        &self,
        answer: &AnswerDrafts,
        matched: usize,
        most: usize,
    ) -> usize {
        let lengths = LENGTHS.iter().enumerate();
        let affordable = lengths.filter_map(|(place, &length)| {
            let steps = self.evaluation(place);
            let gain = answer.likely_tokens(matched, length) / steps;
            // The costs of longer drafts are learned after those of shorter ones.
            let is_known = place == 0 || self.evaluations[place - 1].0.count > 0;
            (length <= most && is_known && gain > WORTH && self.lookup.covers(steps - 1.0))
                .then_some((gain, length))
        });
        let best = affordable.max_by(|(a, _), (b, _)| a.total_cmp(b));
        best.map_or(0, |(_, length)| length)
    }

    /// Returns whether the draft model is to draft, which first has to prefill so many tokens.
    pub(super) fn drafts_by_model(&mut self, unread: usize) -> bool {
        let per_token = self.model_prefill.get().unwrap_or(ASSUMED_PREFILL);
        let prefill = per_token * unread.min(self.most_prefill()) as f64;
        if self.trial > 0 {
            return self.model.covers(prefill);
        }
        let steps = self.model_steps.get().unwrap_or(f64::INFINITY);
        if self.model_tokens.value > WORTH * steps {
            return self.model.covers(prefill + steps - 1.0);
        }
        if self.model_steps.count > 0 {
            // It does not pay now. What it saved before is not for one trial after another.
            self.model.steps = self.model.steps.min(TRIAL_BUDGET * 0.75);
            self.model_tokens = RunningMean::default();
            self.model_steps = RunningMean::default();
        }
        let is_due = self.model.covers(TRIAL_BUDGET.max(prefill));
        if is_due {
            self.trial = TRIAL;
        }
        is_due
    }

    /// Returns how many tokens the draft model may prefill before that is decided anew: few until its prefill is measured.
    pub(super) fn most_prefill(&self) -> usize {
        match self.model_prefill.count {
            0 => MEASURED_PREFILL,
            _ => usize::MAX,
        }
    }

    /// Records a step.
    pub(super) fn note_step(&mut self, answer: &mut AnswerDrafts, step: DraftedStep) {
        let seconds = step.took.as_secs_f64();
        self.lookup.add(PART * step.given as f64);
        self.model.add(PART * step.given as f64);
        if step.source == DraftSource::None {
            answer.plain.add(seconds);
            answer.drafts_since_plain = 0;
            self.forget();
            return;
        }
        let Some(plain) = answer.plain.get().filter(|plain| *plain > 0.0) else {
            return;
        };
        let steps = seconds / plain;
        let saved = step.given as f64 - steps;
        answer.saved_seconds += saved * plain;
        answer.drafts_since_plain += 1;
        answer.drafted += step.drafted;
        if step.drafted > 0 {
            answer.accepted += step.given - 1;
        }
        match step.source {
            DraftSource::Lookup => {
                self.lookup.add(saved);
                if let Some(place) = LENGTHS.iter().position(|length| *length == step.drafted) {
                    let (mean, unused) = &mut self.evaluations[place];
                    mean.add(steps);
                    *unused = 0;
                }
            }
            DraftSource::Model => {
                answer.by_model += step.drafted;
                self.model.add(saved);
                self.model_tokens.add(step.given as f64);
                self.model_steps.add(steps);
                self.trial = self.trial.saturating_sub(1);
            }
            DraftSource::ModelPrefill(tokens) => {
                self.model.add(saved);
                self.model_prefill.add((steps - 1.0) / tokens.max(1) as f64);
            }
            DraftSource::Check | DraftSource::None => {}
        }
    }

    /// Returns the steps that an evaluation with a draft of that length takes, by shorter ones if there was none.
    fn evaluation(&self, place: usize) -> f64 {
        let known = (0..=place).rev().find_map(|shorter| {
            let steps = self.evaluations[shorter].0.get()?;
            Some((steps - 1.0).max(0.0) / LENGTHS[shorter] as f64)
        });
        1.0 + known.unwrap_or(ASSUMED) * LENGTHS[place] as f64
    }

    fn forget(&mut self) {
        for (mean, unused) in &mut self.evaluations {
            *unused += 1;
            if *unused > FORGOTTEN {
                *mean = RunningMean::default();
                *unused = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests;

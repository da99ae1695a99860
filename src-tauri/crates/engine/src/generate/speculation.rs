//! Speculative decoding: drafted tokens are verified in one evaluation, which pays if several tokens cost little more than
//! one.
//!
//! A draft never changes the answer: the sampler chooses each token from the model's own logits, and a draft that differs is
//! removed. Where several rows are rounded otherwise than one, greedy answers have no drafts (`exactness`). A draft only affects how
//! many tokens one evaluation gives, so that is measured, and `policy` decides by it.

mod exactness;
mod policy;

pub(super) use exactness::{CellPeak, Exactness};
pub(super) use policy::{AnswerDrafts, DraftingPolicy};

use super::{
    GenerationBatch, RunningTask, evaluation::StepShare, shares::PrefillPace, slots::LogitOutputs,
};
use crate::llama::{DecodeOutcome, DraftModel, Token};
use policy::{DraftSource, DraftedStep, LONGEST_MATCH};
use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};
use tierbar_core::Error;

/// The least and the most tokens in a draft of earlier text, and the most in one of a draft model. An evaluation of either length
/// then has a multiple of four rows, which llama.cpp's kernels for CPUs compute together.
const LEAST: u32 = 3;
pub(crate) const MOST: u32 = 7;
/// The most tokens that a draft model prefills in a step.
const CATCH_UP: usize = 512;
/// The most tokens that a draft model may lack when it drafts: they are prefilled together with the draft.
const AT_ONCE: usize = 16;
/// The number of tokens that must occur earlier in the text for what followed them to be drafted.
const KEY: usize = 3;

/// What predicts tokens: earlier text (prompt lookup decoding), and a smaller model of the same vocabulary, if there is one.
#[derive(Debug)]
pub(crate) struct Drafter {
    model: Option<DraftModel>,
    /// The large model waits for the small one's prefill.
    pace: PrefillPace,
}

/// What was predicted for a step.
#[derive(Debug, Default)]
pub(super) struct Prediction {
    /// The tokens to verify.
    pub(super) draft: Vec<Token>,
    source: DraftSource,
    /// Whether the draft is only evaluated to compare logits.
    is_check: bool,
    /// The token that earlier text predicts, drafted or not, and how many tokens before it match.
    looked_up: Option<(Token, usize)>,
}

impl Drafter {
    pub(crate) fn new(model: Option<DraftModel>) -> Self {
        Self {
            model,
            pace: PrefillPace::default(),
        }
    }

    fn predict(
        &mut self,
        tokens: &[Token],
        answer: &mut AnswerDrafts,
        policy: &mut DraftingPolicy,
        most: usize,
    ) -> Prediction {
        let found = find_match(tokens);
        let mut prediction = Prediction {
            looked_up: found.map(|found| (tokens[found.next], found.matched)),
            ..Prediction::default()
        };
        if !answer.is_measured() {
            return prediction;
        }
        if let Some(found) = found {
            let length = policy.lookup_length(answer, found.matched, most);
            if length > 0 {
                answer.note_rest(false);
                prediction.source = DraftSource::Lookup;
                prediction.draft = found.draft(tokens, length);
                return prediction;
            }
        }
        let Some(model) = &mut self.model else {
            if found.is_some() {
                answer.note_rest(true);
            }
            return prediction;
        };
        let unread = model.unread(tokens);
        let drafts = policy.drafts_by_model(unread.saturating_sub(AT_ONCE));
        answer.note_rest(!drafts);
        if !drafts {
            return prediction;
        }
        if unread > AT_ONCE {
            let began = Instant::now();
            let most = CATCH_UP.min(policy.most_prefill());
            let read = model.read_on(tokens, self.pace.chunk(most));
            self.pace.observe(read, began.elapsed());
            prediction.source = DraftSource::ModelPrefill(read);
        } else {
            prediction.source = DraftSource::Model;
            prediction.draft = model.draft(tokens, most);
        }
        prediction
    }
}

/// Where the last tokens occur earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Match {
    /// The place behind the earlier occurrence.
    next: usize,
    matched: usize,
}

impl Match {
    /// Returns what followed, as often as the text would repeat itself.
    fn draft(self, tokens: &[Token], length: usize) -> Vec<Token> {
        let following = tokens[self.next..].iter().copied();
        following.cycle().take(length).collect()
    }
}

/// Returns the earlier occurrence with the most matching tokens, or of several the latest.
fn find_match(tokens: &[Token]) -> Option<Match> {
    let start = tokens.len().checked_sub(KEY)?;
    let key = &tokens[start..];
    let mut best: Option<Match> = None;
    let earlier = tokens[..tokens.len() - 1].windows(KEY).enumerate().rev();
    for (at, _) in earlier.filter(|(_, window)| *window == key) {
        let pairs = tokens[..at].iter().rev().zip(tokens[..start].iter().rev());
        let before = pairs.take(LONGEST_MATCH).take_while(|(a, b)| a == b);
        let matched = KEY + before.count();
        if best.is_none_or(|best| matched > best.matched) {
            best = Some(Match {
                next: at + KEY,
                matched,
            });
        }
        if matched >= LONGEST_MATCH {
            break;
        }
    }
    best
}

impl GenerationBatch<'_> {
    /// Drafts for the only stream.
    pub(super) fn predict(&mut self, at: usize) -> Prediction {
        let RunningTask { slot, task } = &mut self.running[at];
        let Some(drafter) = &mut self.drafter else {
            return Prediction::default();
        };
        // A draft must be removable again, and stand-ins of images cannot be drafted from.
        if task.is_reading() || task.has_media() || self.model.is_recurrent() {
            return Prediction::default();
        }
        let total = self.slots.held(*slot) + 2;
        let mut most = (MOST as usize)
            .min(self.slots.context.batch - 1)
            .min(self.slots.capacity().saturating_sub(total))
            .min(task.left().saturating_sub(1));
        let (tokens, deterministic) = (self.slots.held_in_all(), task.is_deterministic());
        if deterministic {
            if !self.exactness.allows_drafts(tokens, self.slots.peak()) {
                task.drafts.note_difference();
                return Prediction::default();
            }
            most = most.min(Exactness::room(tokens));
        }
        if most < LEAST as usize || !self.slots.has_room(most + 1) {
            return Prediction::default();
        }
        let mut prediction =
            drafter.predict(&task.tokens, &mut task.drafts, &mut self.policy, most);
        let length = prediction.draft.len();
        prediction.is_check =
            deterministic && length > 0 && self.exactness.is_unknown(tokens, length);
        prediction
    }

    /// After an evaluation with a draft of a kind that was not compared, evaluates the token before the draft alone and compares
    /// the logits. The draft is not used.
    pub(super) fn check(&mut self, shares: &mut [StepShare]) -> Result<DecodeOutcome, Error> {
        let [share] = shares else {
            return Ok(DecodeOutcome::Done);
        };
        let (true, Some(row)) = (share.prediction.is_check, share.row) else {
            return Ok(DecodeOutcome::Done);
        };
        let length = share.prediction.draft.len();
        share.prediction.draft.clear();
        share.prediction.source = DraftSource::Check;
        let beside = self.slots.context.logits(row).map(<[f32]>::to_vec);
        let slot = self.running[share.at].slot;
        let (held, tokens) = (self.slots.held(slot), self.slots.held_in_all());
        self.slots.recover(slot);
        if self.slots.held(slot) != held {
            return Ok(DecodeOutcome::Aborted);
        }
        self.batch.clear();
        let pending = &self.running[share.at].task.tokens[held..held + 1];
        let outputs = LogitOutputs::Last;
        share.row = self.slots.push(&mut self.batch, slot, pending, outputs);
        let outcome = self.slots.context.decode(&mut self.batch)?;
        if outcome == DecodeOutcome::Done
            && let (Some(row), Some(beside)) = (share.row, beside)
            && let Some(alone) = self.slots.context.logits(row)
        {
            let is_exact = self.exactness.compare((tokens, length), &beside, alone);
            if !is_exact {
                let differ = &self.generations.drafts_differ;
                differ.store(true, Ordering::Relaxed);
            }
        }
        Ok(outcome)
    }

    /// Learns from a step of the only stream, which gave so many tokens, the last of which is `chosen` unless it ended the answer.
    pub(super) fn learn(
        &mut self,
        at: usize,
        prediction: &Prediction,
        given: usize,
        chosen: Option<Token>,
        took: Duration,
    ) {
        if self.drafter.is_none() {
            return;
        }
        let answer = &mut self.running[at].task.drafts;
        if let Some((token, matched)) = prediction.looked_up {
            match prediction.source {
                DraftSource::Lookup => {
                    let wrong = chosen.is_some() && given <= prediction.draft.len();
                    answer.note_match(matched, given - 1, wrong);
                }
                // A draft of the model has passed that token.
                _ if given > 1 => {}
                _ => {
                    let right = chosen == Some(token);
                    answer.note_match(matched, right.into(), chosen.is_some() && !right);
                }
            }
        }
        let step = DraftedStep {
            source: prediction.source,
            drafted: prediction.draft.len(),
            given,
            took,
        };
        self.policy.note_step(answer, step);
        let rests = &self.generations.drafting_rests;
        rests.store(answer.rests, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drafted(tokens: &[Token], length: usize) -> Vec<Token> {
        find_match(tokens).map_or_else(Vec::new, |found| found.draft(tokens, length))
    }

    #[test]
    fn lookup_drafts_what_followed_earlier() {
        let text = [1, 2, 3, 4, 5, 9, 2, 3, 4];
        assert_eq!(drafted(&text, 5), [5, 9, 2, 3, 4]);
        assert_eq!(drafted(&text, 2), [5, 9]);
        assert_eq!(drafted(&text, 7), [5, 9, 2, 3, 4, 5, 9]);
        assert_eq!(drafted(&[1, 1, 1, 1], 3), [1, 1, 1]);
        for none in [&[][..], &[1, 2], &[1, 2, 3], &[1, 2, 3, 4]] {
            assert_eq!(find_match(none), None, "{none:?}");
        }
    }

    #[test]
    fn lookup_prefers_the_longest_then_the_latest_match() {
        assert_eq!(drafted(&[1, 2, 3, 7, 1, 2, 3, 8, 1, 2, 3], 1), [8]);
        let longer = [5, 1, 2, 3, 7, 6, 1, 2, 3, 8, 5, 1, 2, 3];
        assert_eq!(drafted(&longer, 1), [7]);
        assert_eq!(find_match(&longer).map(|found| found.matched), Some(4));
        let long = [4; 100];
        let matched = find_match(&long).map(|found| found.matched);
        assert_eq!(matched, Some(KEY + LONGEST_MATCH));
    }
}

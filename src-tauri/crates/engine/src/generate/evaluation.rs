//! One evaluation: what is in its batch, and what comes of it.

use super::{
    GenerationBatch, RunningTask, shares::divide_step, slots::LogitOutputs,
    speculation::Prediction, task::NextStep,
};
use std::{sync::atomic::Ordering, time::Duration};
use tierbar_core::{Code, Error};

/// The interval of checkpoints during prefill, in tokens, for models that cannot go back in their state.
const MARK_EVERY: usize = 2048;

/// What a step evaluates for one of `running`.
pub(super) struct StepShare {
    pub(super) at: usize,
    pub(super) tokens: usize,
    /// The row of its logits for the next token, if all of its tokens are evaluated.
    pub(super) row: Option<usize>,
    /// The row of its first token, if each of them has logits, as the tokens of a prompt do whose probabilities are asked for.
    pub(super) scored: Option<usize>,
    /// Whether the slot gets a checkpoint after it.
    pub(super) mark: bool,
    /// Whether all of its tokens are evaluated after it.
    pub(super) last: bool,
    /// With drafted tokens, evaluated after them, each with a row of its own.
    pub(super) prediction: Prediction,
}

impl GenerationBatch<'_> {
    /// Fills the batch for the next evaluation.
    pub(super) fn fill(&mut self) -> Vec<StepShare> {
        self.batch.clear();
        let room = self.slots.context.batch;
        let wants: Vec<_> = self
            .running
            .iter()
            .map(|one| one.task.tokens_due(self.slots.held(one.slot)))
            .collect();
        let streams = self.running.iter().any(|one| !one.task.is_reading());
        let prefill = if streams || !self.is_interruptible() {
            self.pace.chunk(room)
        } else {
            room
        };
        let embeds = self.is_embedding(&wants);
        self.slots.context.set_embeddings(embeds);
        let mut filled = Vec::new();
        // Each generation may have one row of logits, and those whose prompts are scored share the rest.
        let mut rows = self
            .slots
            .context
            .outputs
            .saturating_sub(self.running.len());
        for (at, share) in divide_step(&wants, room, prefill).into_iter().enumerate() {
            let running = &self.running[at];
            let share = if running.task.embeds() && wants[at] > 1 {
                // The last token is evaluated separately.
                share.min(wants[at] - 1)
            } else {
                share
            };
            let share = if embeds && wants[at] > 1 { 0 } else { share };
            let scores = running.task.scores();
            let share = if scores { share.min(1 + rows) } else { share };
            let held = self.slots.held(running.slot);
            let mark = self.next_mark(running);
            let tokens = mark.map_or(share, |mark| share.min(mark - held));
            if tokens == 0 {
                continue;
            }
            let last = held + tokens == running.task.tokens.len();
            let pending = &self.pending(running)[..tokens];
            let answers = last && running.task.answers();
            let outputs = match (scores, answers) {
                (true, _) => LogitOutputs::All,
                (false, true) => LogitOutputs::Last,
                (false, false) => LogitOutputs::None,
            };
            let row = self
                .slots
                .push(&mut self.batch, running.slot, pending, outputs);
            if scores {
                rows = rows.saturating_sub(tokens - 1);
            }
            let mark = !last && mark == Some(held + tokens);
            filled.push(StepShare {
                at,
                tokens,
                row: row.filter(|_| answers),
                scored: row.filter(|_| scores).map(|row| row + 1 - tokens),
                mark,
                last,
                prediction: Prediction::default(),
            });
        }
        if let [share] = &mut *filled
            && share.last
            && share.tokens == 1
            && share.scored.is_none()
        {
            share.prediction = self.predict(share.at);
            let running = &self.running[share.at];
            let pushed = &self.pending(running)[..share.tokens];
            let draft = &share.prediction.draft;
            self.slots
                .push_draft(&mut self.batch, running.slot, pushed, draft);
        }
        filled
    }

    /// Returns whether the next evaluation returns embeddings. Then each of its tokens is an output, and there is room for
    /// only one per generation, so it does no prefill.
    fn is_embedding(&self, wants: &[usize]) -> bool {
        let mut due = self.running.iter().zip(wants);
        due.any(|(one, &want)| one.task.embeds() && want == 1)
    }

    /// Returns where the slot gets its next checkpoint during prefill: at each interval, and before the last token of the
    /// prompt, where the next turn will differ from this answer.
    fn next_mark(&self, running: &RunningTask) -> Option<usize> {
        let kept = running.task.job.cache_prompt;
        if !kept || !self.slots.forgets || !running.task.is_reading() {
            return None;
        }
        let held = self.slots.held(running.slot);
        let regular = (held / MARK_EVERY + 1) * MARK_EVERY;
        let end = running.task.tokens.len() - 1;
        Some(if end > held {
            regular.min(end)
        } else {
            regular
        })
    }

    /// Adds the evaluated tokens to their slots, and chooses the next token, or several with a draft, for each generation that
    /// is fully evaluated. `took`: the time of the evaluation, with that of the draft.
    pub(super) fn settle(&mut self, shares: &[StepShare], took: Duration) {
        let mut ended = Vec::new();
        for share in shares {
            let RunningTask { slot, task } = &mut self.running[share.at];
            let continues = share.tokens == 1 && !task.is_reading();
            let held = self.slots.held(*slot);
            self.slots
                .extend(*slot, &task.tokens[held..held + share.tokens]);
            if share.mark {
                self.slots.mark(*slot);
            }
            for place in 0..share.scored.map_or(0, |_| share.tokens) {
                let row = share.scored.map(|first| first + place);
                if let Some(logits) = row.and_then(|row| self.slots.context.logits(row)) {
                    task.score(held + place, logits);
                }
            }
            if !share.last {
                continue;
            }
            let Some(row) = share.row else {
                ended.push((share.at, Ok(NextStep::Held)));
                continue;
            };
            let capacity = self.slots.capacity();
            if task.embeds() {
                ended.push((share.at, task.embed(self.slots.context.embedding(row))));
                continue;
            }
            let draft = &share.prediction.draft;
            let (mut given, mut chosen) = (0_usize, None);
            for place in 0..=draft.len() {
                let next = self
                    .slots
                    .context
                    .logits(row + place)
                    .ok_or_else(|| Error::new(Code::Internal, "no logits to sample from"))
                    .and_then(|logits| task.choose(logits, capacity));
                given += 1;
                if !matches!(next, Ok(NextStep::Token)) {
                    chosen = None;
                    ended.push((share.at, next));
                    break;
                }
                chosen = task.tokens.last().copied();
                if draft.get(place).copied() != chosen {
                    break;
                }
                self.slots.extend(*slot, &draft[place..=place]);
            }
            if !draft.is_empty() {
                let of = self.generations;
                let (drafted, right) = (draft.len() as u64, given as u64 - 1);
                of.drafted.fetch_add(drafted, Ordering::Relaxed);
                of.accepted.fetch_add(right, Ordering::Relaxed);
                // Rejected drafts are removed.
                self.slots.recover(*slot);
            }
            if continues && shares.len() == 1 {
                self.learn(share.at, &share.prediction, given, chosen, took);
            }
        }
        self.end(ended);
    }

    /// Discards the batch: the slots return to their state before it.
    pub(super) fn recover(&mut self, shares: &[StepShare]) {
        for share in shares {
            self.slots.recover(self.running[share.at].slot);
        }
    }
}

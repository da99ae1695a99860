//! The slots: the sequences of the context, their tokens, and how much of them a new prompt can reuse.

mod swapping;

use super::{WrittenState, speculation::CellPeak};
use crate::{
    bad,
    llama::{Batch, Context, Model, SequenceEnd, SequenceTokens, Token, common_prefix, undivided},
    saved_state::SavedState,
};
use std::{cmp::Reverse, sync::Arc};
use tierbar_contexts::Draft;
use tierbar_core::{Code, Error, budget::CHECKPOINT_BYTES};

/// A shared prefix shorter than one part in this many of the prompt is not worth replacing another conversation.
const WORTH: usize = 10;
/// A prompt is restored from a file only for at least this many tokens.
const LEAST_RESTORED: usize = 32;

/// What a slot must provide.
#[derive(Debug)]
pub(super) struct SlotRequest<'a> {
    pub(super) tokens: &'a [Token],
    /// Whether cached tokens may be reused.
    pub(super) reuse: bool,
    pub(super) saved: Option<&'a SavedState>,
    /// Whether the logits of the last token are needed, so that it must be evaluated.
    pub(super) answers: bool,
}

impl SlotRequest<'_> {
    /// Returns how many of the tokens can be reused from these.
    fn shared(&self, held: &[Token]) -> usize {
        if !self.reuse {
            return 0;
        }
        let shared = common_prefix(held, self.tokens);
        let shared = shared.min(self.tokens.len().saturating_sub(self.answers.into()));
        undivided(self.tokens, shared)
    }
}

/// The slot that a prompt got.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) slot: usize,
    /// Why it was not filled from the file that has most of the prompt.
    pub(super) unrestored: Option<Error>,
}

/// Which of a slot's next tokens have logits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LogitOutputs {
    None,
    Last,
    All,
}

/// A sequence and the tokens that it holds.
#[derive(Debug, Default)]
struct Slot {
    held: SequenceTokens,
    /// In order of position.
    checkpoints: Vec<Checkpoint>,
    busy: bool,
    /// The time of its last use, as a counter.
    used: u64,
    /// Whether its conversation may continue.
    kept: bool,
}

/// The part of the state at a position that later tokens overwrite: sliding windows and recurrent states.
#[derive(Debug)]
struct Checkpoint {
    tokens: usize,
    state: Vec<u8>,
    made: u64,
}

#[derive(Debug)]
pub(super) struct Slots {
    pub(super) context: Context,
    slots: Vec<Slot>,
    /// Whether the model cannot go back by itself, so that this needs a checkpoint.
    pub(super) forgets: bool,
    uses: u64,
    peak: CellPeak,
}

impl Slots {
    pub(super) fn new(model: &Arc<Model>, context: Context) -> Self {
        Self {
            slots: (0..context.sequences).map(|_| Slot::default()).collect(),
            forgets: model.forgets(),
            context,
            uses: 0,
            peak: CellPeak::default(),
        }
    }

    /// Returns the capacity of all slots together, in tokens.
    pub(super) fn capacity(&self) -> usize {
        self.context.capacity() as usize
    }

    pub(super) fn held(&self, slot: usize) -> usize {
        self.slots[slot].held.len()
    }

    pub(super) fn has_idle(&self) -> bool {
        self.slots.iter().any(|slot| !slot.busy)
    }

    /// Returns how many tokens all slots hold together.
    pub(super) fn held_in_all(&self) -> usize {
        self.slots.iter().map(|slot| slot.held.len()).sum()
    }

    /// Returns the most tokens that the cache may have cells for, as [`CellPeak`] has it.
    pub(super) fn peak(&self) -> usize {
        self.peak.tokens()
    }

    fn note_peak(&mut self) {
        self.peak
            .note(self.slots.iter().map(|slot| slot.held.len()));
    }

    /// Returns whether this many more tokens fit.
    pub(super) fn has_room(&self, tokens: usize) -> bool {
        self.held_in_all() + tokens <= self.capacity()
    }

    /// Takes an idle slot for the tokens. Afterwards it has the longest possible prefix of them, without the last token if
    /// its logits are needed.
    pub(super) fn seat(&mut self, wanted: &SlotRequest<'_>) -> Option<Seat> {
        let idle = (0..self.slots.len()).filter(|&at| !self.slots[at].busy);
        // An empty slot can share the tokens of another at no cost.
        let lends = !self.forgets && idle.clone().any(|at| self.slots[at].held.is_empty());
        let rank = |at: usize| {
            let (usable, slot) = (self.usable(at, wanted), &self.slots[at]);
            let held = slot.held.len();
            let little = usable * WORTH < wanted.tokens.len() || usable * WORTH < held;
            let worth = if little || (usable < held && lends) {
                0
            } else {
                usable
            };
            (worth, slot.held.is_empty(), Reverse(slot.used))
        };
        let chosen = idle.max_by_key(|&at| rank(at))?;
        let restored = self.restore(chosen, wanted);
        if !matches!(restored, Ok(true)) {
            self.take_over(chosen, wanted);
        }
        self.uses += 1;
        let slot = &mut self.slots[chosen];
        (slot.busy, slot.used) = (true, self.uses);
        slot.kept = wanted.reuse;
        Some(Seat {
            slot: chosen,
            unrestored: restored.err(),
        })
    }

    /// Returns how many of the tokens are in memory for the slot, and in which slot: its own, or one that shares them.
    fn live(&self, slot: usize, wanted: &SlotRequest<'_>) -> (usize, usize) {
        let all = (0..self.slots.len()).filter(|&at| at == slot || !self.forgets);
        let most = all
            .map(|at| (self.usable(at, wanted), at == slot, at))
            .max();
        most.map_or((0, slot), |(usable, _, at)| (usable, at))
    }

    /// Gives the slot the tokens that are in memory.
    fn take_over(&mut self, slot: usize, wanted: &SlotRequest<'_>) {
        let (shared, lender) = self.live(slot, wanted);
        if lender == slot {
            self.rewind(slot, shared);
            return;
        }
        self.clear(slot);
        let held = SequenceTokens::from(wanted.tokens[..shared].to_vec());
        self.context.share(lender, slot, held.end());
        self.slots[slot].held = held;
    }

    /// Frees the slot, but keeps its tokens for a prompt that starts with them.
    pub(super) fn leave(&mut self, slot: usize) {
        self.uses += 1;
        let slot = &mut self.slots[slot];
        (slot.busy, slot.used) = (false, self.uses);
    }

    /// Clears the least recently used idle slot. Returns `false` if there is none.
    pub(super) fn evict(&mut self) -> bool {
        let idle = |at: &usize| !self.slots[*at].busy && !self.slots[*at].held.is_empty();
        let oldest = (0..self.slots.len())
            .filter(idle)
            .min_by_key(|&at| self.slots[at].used);
        oldest.map(|at| self.clear(at)).is_some()
    }

    pub(super) fn clear(&mut self, slot: usize) {
        self.context.clear(slot);
        self.slots[slot].held.clear();
        self.slots[slot].checkpoints.clear();
        self.note_peak();
    }

    /// Returns how many of the tokens the slot holds and can continue from.
    fn usable(&self, at: usize, wanted: &SlotRequest<'_>) -> usize {
        let slot = &self.slots[at];
        let shared = wanted.shared(&slot.held);
        if !self.forgets {
            return shared;
        }
        let end = SequenceEnd::of(&slot.held[..shared]);
        if self.context.can_truncate(at, end) {
            return shared;
        }
        let at_checkpoint = slot.checkpoints.iter().map(|checkpoint| checkpoint.tokens);
        at_checkpoint.filter(|&at| at <= shared).max().unwrap_or(0)
    }

    /// Fills the slot from a file, if that has more of the prompt than memory.
    ///
    /// # Errors
    /// Those of [`Self::fill`], and [`Code::Overloaded`] without room. The prompt is evaluated then.
    fn restore(&mut self, at: usize, wanted: &SlotRequest<'_>) -> Result<bool, Error> {
        let Some(saved) = wanted.saved else {
            return Ok(false);
        };
        let shared = wanted.shared(&saved.tokens);
        let usable = saved.usable(&wanted.tokens[..shared]);
        let (live, _) = self.live(at, wanted);
        // A context loaded by name is always restored, even for few tokens.
        let least = if wanted.answers { LEAST_RESTORED } else { 1 };
        if usable < live + least {
            return Ok(false);
        }
        let busy = self.slots.iter().filter(|slot| slot.busy);
        let kept: usize = busy.map(|slot| slot.held.len()).sum();
        if kept + saved.tokens.len() > self.capacity() {
            return Err(no_room());
        }
        self.clear(at);
        while !self.has_room(saved.tokens.len()) {
            if !self.evict() {
                return Err(no_room());
            }
        }
        if let Err(error) = self.fill(at, saved) {
            tracing::warn!("a conversation is not restored: {error}");
            if saved.swapped && error.code != Code::Storage {
                // It would also fail for the next request.
                let _gone = std::fs::remove_file(&saved.path);
            }
            self.clear(at);
            return Err(error);
        }
        self.slots[at].held = SequenceTokens::from(saved.tokens.to_vec());
        if saved.back.is_some()
            && let Ok(Some((tokens, state))) = tierbar_contexts::read_earlier_end(&saved.path)
        {
            self.add_mark(at, tokens, state);
        }
        self.rewind(at, shared);
        Ok(!self.slots[at].held.is_empty())
    }

    /// Fills the empty slot from a file.
    ///
    /// # Errors
    /// [`Code::Storage`] if the file cannot be read or unpacked now, which says nothing of the file; [`Code::Corrupt`] if it is
    /// damaged; [`Code::ContextMismatch`] if it is whole and llama.cpp refuses it.
    fn fill(&mut self, at: usize, saved: &SavedState) -> Result<(), Error> {
        let state = tierbar_contexts::state(&saved.path)?;
        let filled = self.context.restore(at, state.as_ref(), &saved.tokens);
        // llama.cpp does not say whether it could not read the file, or did not like it.
        filled.or_else(|refused| tierbar_contexts::verify(&saved.path).and(Err(refused)))
    }

    /// Frees the checkpoints of idle slots. Returns their size in bytes.
    pub(super) fn trim(&mut self) -> u64 {
        let before = self.checkpoint_bytes();
        for slot in self.slots.iter_mut().filter(|slot| !slot.busy) {
            slot.checkpoints = Vec::new();
        }
        before - self.checkpoint_bytes()
    }

    pub(super) fn save(&mut self, at: usize, draft: Draft) -> Result<WrittenState, Error> {
        draft.check_room(self.context.state_bytes(at))?;
        let tokens = &self.slots[at].held;
        let bytes = self.context.save(at, draft.path(), tokens)?;
        Ok(WrittenState {
            tokens: tokens.len(),
            bytes,
            draft,
        })
    }

    /// Writes the state of the idle slot that was used last.
    pub(super) fn save_latest(&mut self, draft: Draft) -> Result<WrittenState, Error> {
        let idle = |at: &usize| !self.slots[*at].busy && !self.slots[*at].held.is_empty();
        let latest = (0..self.slots.len())
            .filter(idle)
            .max_by_key(|&at| self.slots[at].used);
        let latest = latest.ok_or_else(|| {
            bad("there is no conversation to save")
                .hint("save after an answer, or send the conversation as `messages` or `prompt`")
        })?;
        self.save(latest, draft)
    }

    /// Goes back to the first `keep` tokens, or to fewer.
    fn rewind(&mut self, at: usize, keep: usize) {
        let slot = &mut self.slots[at];
        slot.checkpoints
            .retain(|checkpoint| checkpoint.tokens <= keep);
        let end = SequenceEnd::of(&slot.held[..keep]);
        if keep > 0 && self.context.truncate(at, end) {
            slot.held.truncate(keep);
            return;
        }
        while let Some(checkpoint) = slot.checkpoints.last() {
            let end = SequenceEnd::of(&slot.held[..checkpoint.tokens]);
            if self
                .context
                .restore_passing_state(at, &checkpoint.state, end)
            {
                slot.held.truncate(checkpoint.tokens);
                return;
            }
            // The sequence is now empty, so the other checkpoints are invalid as well.
            slot.checkpoints.clear();
        }
        self.clear(at);
    }

    /// Adds a checkpoint at the slot's current position, to which the model could not go back.
    pub(super) fn mark(&mut self, at: usize) {
        let tokens = self.slots[at].held.len();
        let marked = |checkpoint: &Checkpoint| checkpoint.tokens == tokens;
        if self.slots[at].checkpoints.iter().any(marked) {
            return;
        }
        let state = self.context.passing_state(at);
        if !state.is_empty() {
            self.add_mark(at, tokens, state);
        }
    }

    fn add_mark(&mut self, at: usize, tokens: usize, state: Vec<u8>) {
        self.uses += 1;
        let made = self.uses;
        self.slots[at].checkpoints.push(Checkpoint {
            tokens,
            state,
            made,
        });
        while self.checkpoint_bytes() > CHECKPOINT_BYTES {
            let all = self.slots.iter().flat_map(|slot| &slot.checkpoints);
            let Some(oldest) = all.map(|checkpoint| checkpoint.made).min() else {
                break;
            };
            for slot in &mut self.slots {
                slot.checkpoints
                    .retain(|checkpoint| checkpoint.made != oldest);
            }
        }
    }

    fn checkpoint_bytes(&self) -> u64 {
        let all = self.slots.iter().flat_map(|slot| &slot.checkpoints);
        all.map(|checkpoint| checkpoint.state.len() as u64).sum()
    }

    /// Adds the slot's next tokens to a batch, and returns the row of the last one.
    pub(super) fn push(
        &self,
        batch: &mut Batch,
        slot: usize,
        tokens: &[Token],
        outputs: LogitOutputs,
    ) -> Option<usize> {
        let start = self.slots[slot].held.end().next;
        let mut row = None;
        for ((place, &token), position) in tokens.iter().enumerate().zip(start..) {
            let output = match outputs {
                LogitOutputs::None => false,
                LogitOutputs::Last => place + 1 == tokens.len(),
                LogitOutputs::All => true,
            };
            row = Some(batch.push(token, position, slot, output));
        }
        batch.reads_prompt |= outputs == LogitOutputs::All;
        row
    }

    /// Adds drafted tokens after the slot's tokens in the batch, each with its logits.
    pub(super) fn push_draft(
        &self,
        batch: &mut Batch,
        slot: usize,
        pushed: &[Token],
        draft: &[Token],
    ) {
        let start = self.slots[slot].held.end().after(pushed).next;
        for (&token, position) in draft.iter().zip(start..) {
            batch.push(token, position, slot, true);
        }
    }

    /// Adds these tokens to the slot after the batch with them was evaluated.
    pub(super) fn extend(&mut self, slot: usize, tokens: &[Token]) {
        self.slots[slot].held.extend(tokens);
        self.note_peak();
    }

    /// Restores a slot to its tokens before an interrupted evaluation.
    pub(super) fn recover(&mut self, slot: usize) {
        let held = &self.slots[slot].held;
        if self.context.last(slot) != held.end().last {
            self.rewind(slot, held.len());
        }
    }
}

fn no_room() -> Error {
    let message = "running answers leave no room for the saved context";
    Error::new(Code::Overloaded, message).hint("try again when they have ended")
}

//! Writes the conversations in the slots when the process ends.

use super::{Slot, Slots, WrittenState};
use crate::{saved_state::MIN_SWAPPED_TOKENS, swap::ConversationSwap};
use std::cmp::Reverse;
use tierbar_core::Error;

impl Slots {
    /// Writes the conversations worth keeping, the most recently used first. Called at the end of the process, when nothing runs.
    pub(in crate::generate) fn swap_out(&mut self, swap: &ConversationSwap) {
        let worth = |slot: &Slot| slot.kept && slot.held.len() >= MIN_SWAPPED_TOKENS;
        let mut order: Vec<_> = (0..self.slots.len())
            .filter(|&at| worth(&self.slots[at]))
            .collect();
        order.sort_by_key(|&at| Reverse(self.slots[at].used));
        for at in order {
            if let Err(error) = self.swap_one_out(swap, at) {
                tracing::warn!("a conversation was not kept: {}", error.message);
            }
        }
    }

    fn swap_one_out(&mut self, swap: &ConversationSwap, at: usize) -> Result<(), Error> {
        let held = self.slots[at].held.len();
        let back = self.slots[at].checkpoints.pop();
        let back = back.filter(|back| back.tokens < held);
        let bytes = back.as_ref().map_or(0, |back| back.state.len() as u64);
        let bytes = bytes + self.context.state_bytes(at);
        let Some(draft) = swap.draft(&self.slots[at].held, bytes)? else {
            return Ok(());
        };
        let WrittenState {
            mut draft, bytes, ..
        } = self.save(at, draft)?;
        if let Some(back) = back {
            draft.add_back(back.tokens, &back.state)?;
        }
        swap.seal(draft, &self.slots[at].held, bytes)
    }
}

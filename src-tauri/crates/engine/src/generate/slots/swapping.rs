//! What the slots hold, written when the process has to end.

use super::{Slot, Slots, Written, sequence};
use crate::swap::{LEAST, Swap};
use std::cmp::Reverse;
use tierbar_core::Error;

impl Slots {
    /// Writes what the slots hold, those used last first, as far as it is worth it. For the end of the process: nothing runs.
    pub(in crate::generate) fn swap_out(&mut self, swap: &Swap) {
        let worth = |slot: &Slot| slot.kept && slot.held.len() >= LEAST;
        let mut order: Vec<_> = (0..self.slots.len())
            .filter(|&at| worth(&self.slots[at]))
            .collect();
        order.sort_by_key(|&at| Reverse(self.slots[at].used));
        for at in order {
            if let Err(error) = self.swap_one_out(swap, at) {
                tracing::warn!("a conversation is not kept: {}", error.message);
            }
        }
    }

    fn swap_one_out(&mut self, swap: &Swap, at: usize) -> Result<(), Error> {
        let held = self.slots[at].held.len();
        let back = self.slots[at].checkpoints.pop();
        let back = back.filter(|back| back.tokens < held);
        let bytes = back.as_ref().map_or(0, |back| back.state.len() as u64);
        let bytes = bytes + self.context.state_bytes(sequence(at));
        let Some(draft) = swap.draft(&self.slots[at].held, bytes)? else {
            return Ok(());
        };
        let Written {
            mut draft, bytes, ..
        } = self.save(at, draft)?;
        if let Some(back) = back {
            draft.add_back(back.tokens, &back.state)?;
        }
        swap.seal(draft, &self.slots[at].held, bytes)
    }
}

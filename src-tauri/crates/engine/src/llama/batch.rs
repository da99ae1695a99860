//! The tokens of one evaluation, of several sequences.

use super::{Token, context::Sequence};
use llama_cpp_sys_2 as sys;

/// Reused: llama.cpp reads its arrays.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    tokens: Vec<Token>,
    positions: Vec<sys::llama_pos>,
    sequences: Vec<sys::llama_seq_id>,
    outputs: Vec<i8>,
    /// Whether some of its outputs are for tokens of a prompt, which are known.
    pub(crate) reads_prompt: bool,
    // For llama.cpp: for each token, the number of its sequences and a pointer to them.
    counts: Vec<i32>,
    pointers: Vec<*mut sys::llama_seq_id>,
}

// SAFETY: the pointers are set anew in each `raw`, and point into this batch.
unsafe impl Send for Batch {}

impl Batch {
    pub(crate) fn clear(&mut self) {
        self.tokens.clear();
        self.positions.clear();
        self.sequences.clear();
        self.outputs.clear();
        self.reads_prompt = false;
    }

    /// Returns whether the successor of each of its tokens is to be chosen.
    pub(super) fn generates(&self) -> bool {
        !self.reads_prompt && self.outputs.iter().all(|&output| output != 0)
    }

    pub(crate) fn len(&self) -> usize {
        self.tokens.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Adds a token at its position in the sequence, and returns its row. `output` requests its logits.
    pub(crate) fn push(
        &mut self,
        token: Token,
        position: i32,
        sequence: Sequence,
        output: bool,
    ) -> usize {
        self.tokens.push(token);
        self.positions.push(position);
        self.sequences.push(sequence as i32);
        self.outputs.push(output.into());
        self.tokens.len() - 1
    }

    /// Valid until the batch changes.
    pub(super) fn raw(&mut self) -> sys::llama_batch {
        self.counts.clear();
        self.counts.resize(self.tokens.len(), 1);
        self.pointers.clear();
        self.pointers
            .extend(self.sequences.iter_mut().map(std::ptr::from_mut));
        sys::llama_batch {
            n_tokens: i32::try_from(self.tokens.len()).unwrap_or(i32::MAX),
            token: self.tokens.as_mut_ptr(),
            embd: std::ptr::null_mut(),
            pos: self.positions.as_mut_ptr(),
            n_seq_id: self.counts.as_mut_ptr(),
            seq_id: self.pointers.as_mut_ptr(),
            logits: self.outputs.as_mut_ptr(),
        }
    }
}

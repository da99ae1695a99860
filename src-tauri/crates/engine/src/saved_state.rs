//! A saved state on disk, and how much of a prompt it covers. Shared by what finds such states (`saved_contexts`, `swap`)
//! and what restores them (`generate`).

use crate::llama::{Token, common_prefix, undivided};
use std::{path::PathBuf, sync::Arc};

/// States of swapped-out conversations that cover fewer tokens of a prompt are not used: prefill takes no longer than
/// writing and reading them.
pub(crate) const MIN_SWAPPED_TOKENS: usize = 96;

/// A saved state whose file has been verified.
#[derive(Debug, Clone)]
pub(crate) struct SavedState {
    pub(crate) path: PathBuf,
    pub(crate) tokens: Arc<[Token]>,
    /// The number of tokens at the checkpoint that the file has besides its end.
    pub(crate) back: Option<usize>,
    /// Whether the model can only use the whole state or its checkpoint.
    pub(crate) whole_only: bool,
    /// Whether it is a swapped-out conversation, rather than a context saved by name.
    pub(crate) swapped: bool,
}

impl SavedState {
    /// Returns how many tokens of the prompt it covers.
    pub(crate) fn usable(&self, prompt: &[Token]) -> usize {
        let shared = undivided(prompt, common_prefix(&self.tokens, prompt));
        if shared == self.tokens.len() || !self.whole_only {
            return shared;
        }
        self.back.filter(|&back| back <= shared).unwrap_or(0)
    }
}

//! The tokens that a sequence holds, and where they end.

use super::{SequenceEnd, Token};
use std::ops::Deref;

#[derive(Debug)]
pub(crate) struct SequenceTokens {
    tokens: Vec<Token>,
    /// Cached, because each step needs it.
    end: SequenceEnd,
}

impl Default for SequenceTokens {
    fn default() -> Self {
        Self::from(Vec::new())
    }
}

impl From<Vec<Token>> for SequenceTokens {
    fn from(tokens: Vec<Token>) -> Self {
        let end = SequenceEnd::of(&tokens);
        Self { tokens, end }
    }
}

impl Deref for SequenceTokens {
    type Target = [Token];

    fn deref(&self) -> &[Token] {
        &self.tokens
    }
}

impl SequenceTokens {
    pub(crate) fn end(&self) -> SequenceEnd {
        self.end
    }

    pub(crate) fn extend(&mut self, tokens: &[Token]) {
        self.tokens.extend_from_slice(tokens);
        self.end = self.end.after(tokens);
    }

    pub(crate) fn truncate(&mut self, keep: usize) {
        if keep < self.tokens.len() {
            self.tokens.truncate(keep);
            self.end = SequenceEnd::of(&self.tokens);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.truncate(0);
    }
}

//! The tokens that a sequence holds, and where they end.

use super::{End, Token};
use std::ops::Deref;

#[derive(Debug)]
pub(crate) struct Held {
    tokens: Vec<Token>,
    /// Cached, because each step needs it.
    end: End,
}

impl Default for Held {
    fn default() -> Self {
        Self::from(Vec::new())
    }
}

impl From<Vec<Token>> for Held {
    fn from(tokens: Vec<Token>) -> Self {
        let end = End::of(&tokens);
        Self { tokens, end }
    }
}

impl Deref for Held {
    type Target = [Token];

    fn deref(&self) -> &[Token] {
        &self.tokens
    }
}

impl Held {
    pub(crate) fn end(&self) -> End {
        self.end
    }

    pub(crate) fn extend(&mut self, tokens: &[Token]) {
        self.tokens.extend_from_slice(tokens);
        self.end = self.end.after(tokens);
    }

    pub(crate) fn truncate(&mut self, keep: usize) {
        if keep < self.tokens.len() {
            self.tokens.truncate(keep);
            self.end = End::of(&self.tokens);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.truncate(0);
    }
}

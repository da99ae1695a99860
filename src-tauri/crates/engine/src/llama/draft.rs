//! A small model that guesses what a larger one of the same vocabulary will say.

use super::{Batch, Context, Decoded, Held, Model, Token, common_prefix};
use std::sync::Arc;
use tierbar_core::{Code, Error};

/// So few tokens are read together with the guess.
const AT_ONCE: usize = 16;
/// Drafting continues while the small model's next token has at least this probability.
const SURE: f32 = 0.6;
/// Of tokens that one vocabulary may have beyond the other, and of those at its start that may differ: paddings and
/// control tokens (llama.cpp's `common/speculative.cpp` allows the same).
const MORE_TOKENS: usize = 128;
const FIRST_TOKENS: usize = 5;

#[derive(Debug)]
pub(crate) struct DraftModel {
    context: Context,
    batch: Batch,
    held: Held,
}

impl DraftModel {
    /// Of a context of one sequence, as long as the large model's.
    ///
    /// # Errors
    /// [`Code::ConfigInvalid`] if their vocabularies differ.
    pub(crate) fn new(context: Context, small: &Arc<Model>, large: &Model) -> Result<Self, Error> {
        let (a, b) = (small.vocabulary(), large.vocabulary());
        let piece = |model: &Model, token: usize| {
            let mut bytes = Vec::new();
            model.append_piece(Token::try_from(token).unwrap_or(0), true, &mut bytes);
            bytes
        };
        let same = a.abs_diff(b) <= MORE_TOKENS
            && (FIRST_TOKENS..a.min(b)).all(|token| piece(small, token) == piece(large, token));
        if !same {
            return Err(Error::new(
                Code::ConfigInvalid,
                "the vocabulary of the draft model differs from the model's",
            )
            .hint("choose a smaller model of the same family, or none"));
        }
        Ok(Self {
            context,
            batch: Batch::default(),
            held: Held::default(),
        })
    }

    /// Whether it has not read all of the tokens but the last, as it must have before it guesses.
    pub(crate) fn is_behind(&mut self, tokens: &[Token]) -> bool {
        self.go_back(tokens);
        tokens.len() - self.held.len() > AT_ONCE
    }

    /// Reads at most so many of the tokens, and says how many.
    pub(crate) fn read_on(&mut self, tokens: &[Token], most: usize) -> usize {
        self.go_back(tokens);
        let next = &tokens[self.held.len()..];
        let most = most.min(self.context.batch());
        let before = self.held.len();
        let _not_wanted_yet = self.read(&next[..next.len().min(most)]);
        self.held.len().saturating_sub(before)
    }

    /// Guesses what follows.
    pub(crate) fn draft(&mut self, tokens: &[Token], most: usize) -> Vec<Token> {
        self.go_back(tokens);
        let mut guess = self.read(&tokens[self.held.len()..]);
        let mut drafted = Vec::new();
        while let Some(token) = guess {
            drafted.push(token);
            if drafted.len() >= most {
                break;
            }
            guess = self.read(&[token]);
        }
        drafted
    }

    /// Holds a beginning of the tokens afterwards, without the last: its logits are wanted.
    fn go_back(&mut self, tokens: &[Token]) {
        let keep = common_prefix(&self.held, tokens).min(tokens.len().saturating_sub(1));
        if keep < self.held.len() {
            self.held.truncate(keep);
            if !self.context.truncate(0, self.held.end()) {
                self.context.clear(0);
                self.held.clear();
            }
        }
    }

    /// Reads more tokens, and answers what it is sure comes next.
    fn read(&mut self, tokens: &[Token]) -> Option<Token> {
        self.batch.clear();
        let mut row = 0;
        for ((place, &token), position) in tokens.iter().enumerate().zip(self.held.end().next..) {
            let last = place + 1 == tokens.len();
            row = self.batch.push(token, position, 0, last);
        }
        match self.context.decode(&mut self.batch) {
            Ok(Decoded::Done) => {}
            Ok(Decoded::Aborted) if self.context.truncate(0, self.held.end()) => return None,
            _ => {
                self.context.clear(0);
                self.held.clear();
                return None;
            }
        }
        self.held.extend(tokens);
        let logits = self.context.logits(row)?;
        let (best, most) = logits
            .iter()
            .enumerate()
            .max_by(|(_, a), (_, b)| a.total_cmp(b))?;
        let sum: f32 = logits.iter().map(|logit| (logit - most).exp()).sum();
        (1.0 / sum >= SURE).then(|| Token::try_from(best).ok())?
    }
}

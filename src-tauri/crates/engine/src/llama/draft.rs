//! A draft model: a small model that predicts the tokens of a larger one with the same vocabulary.

use super::{Batch, Context, DecodeOutcome, Model, SequenceTokens, Token, common_prefix};
use std::sync::Arc;
use tierbar_core::{Code, Error};

/// Drafting continues while the small model's next token has at least this probability.
const SURE: f32 = 0.6;
/// How many more tokens one vocabulary may have, and how many at its start may differ: padding and control tokens
/// (llama.cpp's `common/speculative.cpp` allows the same).
const MORE_TOKENS: usize = 128;
const FIRST_TOKENS: usize = 5;

#[derive(Debug)]
pub(crate) struct DraftModel {
    context: Context,
    batch: Batch,
    held: SequenceTokens,
}

impl DraftModel {
    /// Creates a draft model from a context of one sequence, as long as the large model's.
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
            let message = "the vocabulary of the draft model differs from the model's";
            return Err(Error::new(Code::ConfigInvalid, message)
                .hint("choose a smaller model of the same family, or none"));
        }
        Ok(Self {
            context,
            batch: Batch::default(),
            held: SequenceTokens::default(),
        })
    }

    /// Returns how many of the tokens it has yet to prefill.
    pub(crate) fn unread(&mut self, tokens: &[Token]) -> usize {
        self.go_back(tokens);
        tokens.len() - self.held.len()
    }

    /// Prefills at most this many of the tokens, and returns how many.
    pub(crate) fn read_on(&mut self, tokens: &[Token], most: usize) -> usize {
        self.go_back(tokens);
        let next = &tokens[self.held.len()..];
        let most = most.min(self.context.batch);
        let before = self.held.len();
        let _not_wanted_yet = self.evaluate(&next[..next.len().min(most)]);
        self.held.len().saturating_sub(before)
    }

    pub(crate) fn draft(&mut self, tokens: &[Token], most: usize) -> Vec<Token> {
        self.go_back(tokens);
        let mut guess = self.evaluate(&tokens[self.held.len()..]);
        let mut drafted = Vec::new();
        while let Some(token) = guess {
            drafted.push(token);
            if drafted.len() >= most {
                break;
            }
            guess = self.evaluate(&[token]);
        }
        drafted
    }

    /// Goes back to a prefix of the tokens without the last, whose logits are needed.
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

    /// Evaluates tokens, and returns the next one if it is probable enough.
    fn evaluate(&mut self, tokens: &[Token]) -> Option<Token> {
        self.batch.clear();
        let mut row = 0;
        for ((place, &token), position) in tokens.iter().enumerate().zip(self.held.end().next..) {
            let last = place + 1 == tokens.len();
            row = self.batch.push(token, position, 0, last);
        }
        match self.context.decode(&mut self.batch) {
            Ok(DecodeOutcome::Done) => {}
            Ok(DecodeOutcome::Aborted) if self.context.truncate(0, self.held.end()) => return None,
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

//! Jobs for the engine thread, and the events that it sends for them.

use super::{
    Media,
    task::{Candidate, TokenReport},
};
use crate::{
    bad,
    llama::{PagingReport, Sampler, Token},
    saved_state::SavedState,
};
use serde::Serialize;
use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};
use tierbar_chats::{AnswerDeviation, ExpertReads, Speculation};
use tierbar_contexts::Draft;
use tierbar_core::{Code, Error};
use tokio::sync::mpsc::UnboundedSender;

#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) prompt: Vec<Token>,
    /// The media of its stand-ins, in order.
    pub(crate) media: Arc<[Media]>,
    /// Reuse what the cache already holds of this prompt.
    pub(crate) cache_prompt: bool,
    /// A state on disk with at least a part of this prompt.
    pub(crate) saved: Option<SavedState>,
    pub(crate) goal: JobGoal,
    /// Set when the client has gone.
    pub(crate) cancel: Arc<AtomicBool>,
    /// Which of its request's answers this is.
    pub(crate) index: usize,
    pub(crate) events: UnboundedSender<(usize, JobEvent)>,
}

/// What a prompt is evaluated for.
#[derive(Debug)]
pub(crate) enum JobGoal {
    Answer(Box<AnswerParams>),
    /// To load it into the cache from a file.
    Load,
    /// To write its state to a file.
    Save(Draft),
    /// To write the most recent conversation to a file. There is no prompt.
    SaveLatest(Draft),
    /// To return its embedding, or its score by a reranking model.
    Embed,
}

#[derive(Debug)]
pub(crate) struct AnswerParams {
    /// Built by the caller, because parsing a grammar would delay running generations.
    pub(crate) sampler: Sampler,
    pub(crate) rules: AnswerRules,
}

/// When an answer ends, and what is reported of it; the same for all answers to a request.
#[derive(Debug, Clone)]
pub(crate) struct AnswerRules {
    pub(crate) stops: Vec<String>,
    /// Control tokens whose text belongs to the answer.
    pub(crate) shown: Vec<Token>,
    /// The most tokens to generate; `None` for as many as fit into the context.
    pub(crate) max_tokens: Option<usize>,
    /// Whether to continue after an end-of-generation token.
    pub(crate) ignore_eos: bool,
    /// How many alternatives to report per token; `None` reports no probabilities.
    pub(crate) log_probabilities: Option<usize>,
    /// The same for the tokens of the prompt. It is read anew for that, since the cache holds no logits.
    pub(crate) prompt_probabilities: Option<usize>,
    /// No token that ends the answer is chosen before so many, and no stop string is looked for in them.
    pub(crate) min_tokens: usize,
    /// Tokens that end the answer besides the model's own.
    pub(crate) stop_tokens: Vec<Token>,
}

#[derive(Debug)]
pub(crate) enum JobEvent {
    /// Before the first text, if it was asked for.
    Prompt(ScoredPrompt),
    Text {
        text: String,
        reports: Vec<TokenReport>,
        /// Prompt tokens that the cache already held.
        cached: usize,
    },
    // Each of the others ends its job.
    Done(AnswerSummary),
    /// A state was written; with figures if a prompt was evaluated for it.
    Saved(WrittenState, Option<Timings>),
    /// The embedding of a prompt, of length 1, or its score alone.
    Embedded(Vec<f32>),
    Failed(Error),
}

/// A prompt with the probabilities of its tokens but the first, which nothing precedes.
#[derive(Debug)]
pub(crate) struct ScoredPrompt {
    pub(crate) first: Candidate,
    pub(crate) reports: Vec<TokenReport>,
}

impl JobEvent {
    /// Prompt tokens that the cache already held, where the event says so.
    pub(crate) fn cached(&self) -> usize {
        match self {
            Self::Text { cached, .. } => *cached,
            Self::Done(summary) => summary.timings.cache_n,
            _ => 0,
        }
    }
}

/// A state in a file without a name yet.
#[derive(Debug)]
pub(crate) struct WrittenState {
    pub(crate) draft: Draft,
    pub(crate) tokens: usize,
    pub(crate) bytes: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct AnswerSummary {
    pub(crate) finish: FinishReason,
    /// The stop string that ended it.
    pub(crate) stop: Option<String>,
    /// The token of [`AnswerRules::stop_tokens`] that ended it.
    pub(crate) stop_token: Option<Token>,
    pub(crate) timings: Timings,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FinishReason {
    Stop,
    Length,
}

/// llama-server's `timings`, with the same names and units, and a few of our own.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Timings {
    /// Prompt tokens that the cache already held.
    pub(crate) cache_n: usize,
    /// Prompt tokens that were evaluated.
    prompt_n: usize,
    prompt_ms: f64,
    prompt_per_token_ms: f64,
    prompt_per_second: f64,
    /// Tokens that were generated, an end token included.
    pub(crate) predicted_n: usize,
    predicted_ms: f64,
    predicted_per_token_ms: f64,
    predicted_per_second: f64,
    /// Tokens that the context holds.
    pub(super) n_ctx: usize,
    #[serde(flatten)]
    drafts: Option<DraftCounts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    speculation: Option<Speculation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) experts: Option<ExpertReads>,
}

/// What a model's paged weights cost during a generation, and how far it was from the model's own; `None` if nothing was paged and
/// it was not. Generations at the same time share them. `unused`: the part of its experts that a token never uses.
pub(super) fn expert_reads(
    spent: Option<PagingReport>,
    layers: bool,
    unused: Option<f64>,
    tokens: usize,
) -> Option<ExpertReads> {
    let cost = spent.map(|spent| spent.cost).unwrap_or_default();
    let used = cost.stats.hits + cost.stats.misses;
    let changed = spent.and_then(|spent| spent.changed);
    let changed = changed.map(|changed| AnswerDeviation {
        changed: fraction(changed.changed, changed.experts),
        lost_weight: Some(changed.lost / fraction(changed.choices.max(1), 1)),
    });
    let fewer = unused.map(|unused| AnswerDeviation {
        // Of those that are left.
        changed: unused + (1.0 - unused) * changed.map_or(0.0, |changed| changed.changed),
        lost_weight: None,
    });
    (used > 0 || unused.is_some()).then(|| ExpertReads {
        hit_rate: if used > 0 {
            fraction(cost.stats.hits - cost.stats.ahead, used)
        } else {
            1.0
        },
        read_bytes: cost.read_bytes,
        wait_ms: spent
            .is_some_and(|spent| spent.knows_wait)
            .then_some(cost.waited.as_secs_f64() * 1e3),
        tokens: tokens as u64,
        layers,
        approximated: fewer.or(changed),
    })
}

fn fraction(of: u64, all: u64) -> f64 {
    of as f64 / all.max(1) as f64
}

#[derive(Debug, Clone, Copy, Serialize)]
struct DraftCounts {
    draft_n: u64,
    draft_n_accepted: u64,
}

impl Timings {
    pub(super) fn new(
        cache_n: usize,
        prompt_n: usize,
        prompt: Duration,
        predicted_n: usize,
        predicted: Duration,
    ) -> Self {
        let [prompt_seconds, predicted_seconds] =
            [prompt, predicted].map(|took| took.as_secs_f64());
        let [prompt_tokens, predicted_tokens] = [prompt_n, predicted_n].map(|count| count as f64);
        let ratio = |of: f64, by: f64| if by > 0.0 { of / by } else { 0.0 };
        Self {
            cache_n,
            prompt_n,
            prompt_ms: prompt_seconds * 1e3,
            prompt_per_token_ms: ratio(prompt_seconds * 1e3, prompt_tokens),
            prompt_per_second: ratio(prompt_tokens, prompt_seconds),
            predicted_n,
            predicted_ms: predicted_seconds * 1e3,
            predicted_per_token_ms: ratio(predicted_seconds * 1e3, predicted_tokens),
            predicted_per_second: ratio(predicted_tokens, predicted_seconds),
            n_ctx: 0,
            drafts: None,
            speculation: None,
            experts: None,
        }
    }

    pub(super) fn note_speculation(&mut self, speculation: Option<Speculation>) {
        self.speculation = speculation;
        let drafted = speculation.filter(|of| of.drafted > 0);
        self.drafts = drafted.map(|of| DraftCounts {
            draft_n: of.drafted,
            draft_n_accepted: of.accepted,
        });
    }
}

/// # Errors
/// [`Code::ContextExceeded`] with both figures: a prompt needs room for itself and one token of an answer.
pub(crate) fn check_fits(prompt: usize, context: usize) -> Result<(), Error> {
    if prompt == 0 {
        return Err(bad("the prompt is empty"));
    }
    if prompt < context {
        return Ok(());
    }
    Err(too_long_error("the prompt", prompt, context)
        .hint("shorten the prompt, or set a larger context for the tier")
        .detail("prompt_tokens", prompt)
        .detail("context_tokens", context))
}

/// The error for something that the context does not hold, in the words by which agents know that they must shorten a
/// conversation: they look for "prompt is too long", "exceeds the context window" or "maximum context length is … tokens".
pub(crate) fn too_long_error(what: &str, tokens: usize, context: usize) -> Error {
    let message = format!(
        "{what} is too long: with {tokens} tokens, it exceeds the context window; this model's maximum context length is {context} tokens"
    );
    Error::new(Code::ContextExceeded, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_know_that_a_prompt_is_too_long() {
        let error = check_fits(9122, 8192).unwrap_err();
        assert_eq!(
            error.message,
            "the prompt is too long: with 9122 tokens, it exceeds the context window; this model's maximum context length is 8192 tokens"
        );
        assert_eq!(error.details["prompt_tokens"], 9122);
        assert_eq!(
            error.openai_body()["error"]["code"],
            "context_length_exceeded"
        );
    }
}

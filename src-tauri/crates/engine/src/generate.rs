//! The engine's thread: one context, one job after another, the prompt's common prefix kept between them.

use crate::{
    llama::{Context, Decoded, Model, Sampler, Sampling, Token},
    text::TextStream,
};
use serde::Serialize;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};
use tierbar_core::{Code, Error, budget::MICRO_BATCH};
use tokio::sync::mpsc::UnboundedSender;

/// One generation to do.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) prompt: Vec<Token>,
    pub(crate) sampling: Sampling,
    pub(crate) stops: Vec<String>,
    /// Tokens to generate at most; `None` for as many as the context holds.
    pub(crate) max_tokens: Option<usize>,
    /// Go on after an end-of-generation token.
    pub(crate) ignore_eos: bool,
    /// Reuse what the cache already holds of this prompt.
    pub(crate) cache_prompt: bool,
    /// Set when the client has gone.
    pub(crate) cancel: Arc<AtomicBool>,
    pub(crate) events: UnboundedSender<Event>,
}

#[derive(Debug)]
pub(crate) enum Event {
    Text(String),
    Done(Summary),
    Failed(Error),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Summary {
    pub(crate) finish: FinishReason,
    pub(crate) prompt_tokens: usize,
    pub(crate) timings: Timings,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FinishReason {
    Stop,
    Length,
}

/// llama-server's `timings`, of the same names and units.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Timings {
    /// Prompt tokens that the cache already held.
    cache_n: usize,
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
}

impl Timings {
    fn new(
        cache_n: usize,
        prompt_n: usize,
        prompt: Duration,
        predicted_n: usize,
        predicted: Duration,
    ) -> Self {
        let (prompt_ms, predicted_ms) = (prompt.as_secs_f64() * 1e3, predicted.as_secs_f64() * 1e3);
        #[expect(
            clippy::cast_precision_loss,
            reason = "token counts are far below 2^52"
        )]
        let rate = |tokens: usize, ms: f64| {
            if ms > 0.0 {
                tokens as f64 * 1e3 / ms
            } else {
                0.0
            }
        };
        #[expect(
            clippy::cast_precision_loss,
            reason = "token counts are far below 2^52"
        )]
        let each = |tokens: usize, ms: f64| if tokens > 0 { ms / tokens as f64 } else { 0.0 };
        Self {
            cache_n,
            prompt_n,
            prompt_ms,
            prompt_per_token_ms: each(prompt_n, prompt_ms),
            prompt_per_second: rate(prompt_n, prompt_ms),
            predicted_n,
            predicted_ms,
            predicted_per_token_ms: each(predicted_n, predicted_ms),
            predicted_per_second: rate(predicted_n, predicted_ms),
        }
    }
}

/// Whether one runs, and how those before it ended. For `/props`.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Generations {
    running: AtomicBool,
    done: AtomicU64,
    /// The client went away first.
    cancelled: AtomicU64,
    failed: AtomicU64,
}

/// Owns the context and does jobs until the senders are gone.
pub(crate) fn run(
    model: &Arc<Model>,
    mut context: Context,
    jobs: &mpsc::Receiver<Job>,
    generations: &Generations,
) {
    let count = |counter: &AtomicU64| counter.fetch_add(1, Ordering::Relaxed);
    let mut cached = Vec::new();
    for job in jobs {
        // Gone while it waited: what the cache holds is worth more to the next one.
        if job.cancel.load(Ordering::Relaxed) {
            count(&generations.cancelled);
            continue;
        }
        generations.running.store(true, Ordering::Relaxed);
        let outcome = Generation {
            model,
            context: &mut context,
            cached: &mut cached,
            job: &job,
        }
        .run();
        generations.running.store(false, Ordering::Relaxed);
        let event = match outcome {
            Ok(Some(summary)) => {
                count(&generations.done);
                Event::Done(summary)
            }
            // Nobody is left to tell.
            Ok(None) => {
                count(&generations.cancelled);
                continue;
            }
            Err(error) => {
                count(&generations.failed);
                context.rewind(0, 0);
                cached.clear();
                Event::Failed(error)
            }
        };
        let _gone = job.events.send(event);
    }
}

struct Generation<'a> {
    model: &'a Arc<Model>,
    context: &'a mut Context,
    /// The tokens that the context holds, in order.
    cached: &'a mut Vec<Token>,
    job: &'a Job,
}

impl Generation<'_> {
    /// `None` if the client has gone.
    fn run(mut self) -> Result<Option<Summary>, Error> {
        let job = self.job;
        let capacity = self.context.capacity() as usize;
        check_fits(job.prompt.len(), capacity)?;
        let mut sampler = Sampler::new(Arc::clone(self.model), &job.sampling)?;
        let mut text = TextStream::new(job.stops.clone());

        let started = Instant::now();
        let cache_n = self.reuse();
        for chunk in job.prompt[cache_n..].chunks(MICRO_BATCH as usize) {
            if !self.evaluate(chunk)? {
                return Ok(None);
            }
        }
        let prefilled = Instant::now();

        let mut predicted_n = 0;
        let finish = loop {
            if job.max_tokens.is_some_and(|max| predicted_n >= max) {
                break FinishReason::Length;
            }
            let token = sampler.sample(self.context)?;
            predicted_n += 1;
            if !job.ignore_eos && self.model.is_end(token) {
                break FinishReason::Stop;
            }
            let mut bytes = Vec::new();
            self.model.append_piece(token, false, &mut bytes);
            let released = text.push(&bytes);
            self.send(released.text);
            if released.stopped {
                text = TextStream::default();
                break FinishReason::Stop;
            }
            if self.cached.len() >= capacity {
                break FinishReason::Length;
            }
            if !self.evaluate(&[token])? {
                return Ok(None);
            }
        };
        self.send(text.finish());
        let prompt_n = job.prompt.len() - cache_n;
        let timings = Timings::new(
            cache_n,
            prompt_n,
            prefilled - started,
            predicted_n,
            prefilled.elapsed(),
        );
        Ok(Some(Summary {
            finish,
            prompt_tokens: job.prompt.len(),
            timings,
        }))
    }

    /// Keeps what the cache shares with the prompt and returns how many tokens that is. At least the prompt's last
    /// token is evaluated again: the cache holds no logits.
    fn reuse(&mut self) -> usize {
        let shared = if self.job.cache_prompt {
            let same = self
                .cached
                .iter()
                .zip(&self.job.prompt)
                .take_while(|(held, asked)| held == asked)
                .count();
            same.min(self.job.prompt.len() - 1)
        } else {
            0
        };
        let kept = self.context.rewind(shared, self.cached.len());
        self.cached.truncate(kept);
        kept
    }

    /// Appends tokens to the context; `false` if the client has gone.
    fn evaluate(&mut self, tokens: &[Token]) -> Result<bool, Error> {
        let mut batch = tokens.to_vec();
        let decoded = self.context.decode(&mut batch, &self.job.cancel)?;
        if decoded == Decoded::Aborted {
            self.cached.truncate(self.context.held());
            return Ok(false);
        }
        self.cached.extend_from_slice(tokens);
        Ok(true)
    }

    fn send(&self, text: String) {
        if !text.is_empty() && self.job.events.send(Event::Text(text)).is_err() {
            self.job.cancel.store(true, Ordering::Relaxed);
        }
    }
}

/// # Errors
/// [`Code::ContextExceeded`] with both numbers: a prompt needs room for itself and for one token of an answer.
pub(crate) fn check_fits(prompt: usize, context: usize) -> Result<(), Error> {
    if prompt == 0 {
        return Err(Error::new(Code::BadRequest, "the prompt is empty"));
    }
    if prompt < context {
        return Ok(());
    }
    Err(Error::new(
        Code::ContextExceeded,
        format!("the prompt has {prompt} tokens and this tier's context holds {context}"),
    )
    .hint("shorten the prompt, or set a larger context for the tier")
    .detail("prompt_tokens", prompt)
    .detail("context_tokens", context))
}

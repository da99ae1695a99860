//! One generation: its tokens, the choice of the next one, and the events for its client.

use super::{
    AnswerParams, AnswerSummary, FinishReason, Job, JobEvent, JobGoal, Media, ScoredPrompt,
    Timings, WrittenState, embedding::normalize_vector, job::expert_reads, slots::SlotRequest,
    speculation::AnswerDrafts,
};
use crate::{
    llama::{LogProbability, Model, PagingReport, Token, count_likelier_tokens, log_probabilities},
    text::TextStream,
};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Instant,
};
use tierbar_contexts::Draft;
use tierbar_core::Error;

/// A token of an answer with its `logprobs`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TokenReport {
    pub(crate) chosen: Candidate,
    /// Its place among all tokens by likelihood, from 1.
    pub(crate) rank: usize,
    pub(crate) top: Vec<Candidate>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Candidate {
    pub(crate) token: Token,
    /// The token's bytes, which may be partial UTF-8.
    pub(crate) bytes: Vec<u8>,
    pub(crate) log_probability: f32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextStep {
    Token,
    End(FinishReason),
    /// No token is needed: the prompt is evaluated.
    Held,
}

impl NextStep {
    pub(super) fn reason(self) -> FinishReason {
        match self {
            Self::End(reason) => reason,
            Self::Token | Self::Held => FinishReason::Length,
        }
    }
}

#[derive(Debug)]
pub(super) struct GenerationTask {
    pub(super) job: Job,
    /// The prompt and the answer so far: what a slot must hold before the next token is chosen.
    pub(super) tokens: Vec<Token>,
    /// How many of them belong to the prompt.
    prompt: usize,
    model: Arc<Model>,
    text: TextStream,
    /// Reports of tokens whose text is still held back.
    reports: Vec<TokenReport>,
    /// Reports of the prompt's tokens from the second on, as far as they were asked for and evaluated.
    scored: Vec<TokenReport>,
    /// Whether they were sent.
    has_sent_scores: bool,
    /// Prompt tokens that were cached when this first got a slot.
    cached: usize,
    predicted: usize,
    /// The stop string that ended it.
    stop: Option<String>,
    stop_token: Option<Token>,
    pub(super) drafts: AnswerDrafts,
    /// What paged weights had cost before it started.
    paged: Option<PagingReport>,
    embedding: Option<Vec<f32>>,
    started: Option<Instant>,
    prefilled: Option<Instant>,
}

impl GenerationTask {
    pub(super) fn new(model: &Arc<Model>, mut job: Job) -> Self {
        let stops = match &mut job.goal {
            JobGoal::Answer(answering) => std::mem::take(&mut answering.rules.stops),
            _ => Vec::new(),
        };
        Self {
            prompt: job.prompt.len(),
            tokens: std::mem::take(&mut job.prompt),
            text: TextStream::new(stops),
            job,
            model: Arc::clone(model),
            reports: Vec::new(),
            scored: Vec::new(),
            has_sent_scores: false,
            cached: 0,
            predicted: 0,
            stop: None,
            stop_token: None,
            drafts: AnswerDrafts::default(),
            paged: None,
            embedding: None,
            started: None,
            prefilled: None,
        }
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.job.cancel.load(Ordering::Acquire)
    }

    pub(super) fn has_media(&self) -> bool {
        !self.job.media.is_empty()
    }

    /// Returns the next medium when its slot has this many of its tokens.
    pub(super) fn media_at(&self, held: usize) -> Option<&Media> {
        let all = self.job.media.iter();
        all.take_while(|media| media.start <= held)
            .find(|media| held < media.end())
    }

    /// How many tokens are next then, up to a medium or the end.
    pub(super) fn tokens_due(&self, held: usize) -> usize {
        let next = self.job.media.iter().find(|media| held < media.end());
        let end = next.map_or(self.tokens.len(), |media| media.start);
        end.saturating_sub(held)
    }

    pub(super) fn wanted(&self) -> SlotRequest<'_> {
        SlotRequest {
            tokens: &self.tokens,
            reuse: self.job.cache_prompt,
            saved: self.job.saved.as_ref(),
            answers: self.answers(),
        }
    }

    /// Returns whether it needs an output of the last token, rather than only prefill.
    pub(super) fn answers(&self) -> bool {
        matches!(self.job.goal, JobGoal::Answer(_) | JobGoal::Embed)
    }

    /// Returns whether the probabilities of its prompt's tokens are still needed, so that each of them must be an output.
    pub(super) fn scores(&self) -> bool {
        self.prompt_probabilities().is_some() && self.scored.len() + 1 < self.prompt
    }

    fn prompt_probabilities(&self) -> Option<usize> {
        match &self.job.goal {
            JobGoal::Answer(answering) => answering.rules.prompt_probabilities,
            _ => None,
        }
    }

    /// Takes the logits of the token at `place` of its prompt, which say how likely the next one was. A prompt that is evaluated
    /// again, since its slot was needed, is reported once.
    pub(super) fn score(&mut self, place: usize, logits: &[f32]) {
        let Some(top) = self.prompt_probabilities() else {
            return;
        };
        let next = place + 1;
        if next < self.prompt && next == self.scored.len() + 1 {
            let report = self.report_of(logits, self.tokens[next], top);
            self.scored.push(report);
        }
    }

    /// Sends the reports of its prompt, if they were asked for.
    fn send_scores(&mut self) {
        if self.has_sent_scores || self.prompt_probabilities().is_none() {
            return;
        }
        self.has_sent_scores = true;
        let reports = std::mem::take(&mut self.scored);
        let first = self.candidate(self.tokens[0], 0.0);
        self.send_event(JobEvent::Prompt(ScoredPrompt { first, reports }));
    }

    pub(super) fn embeds(&self) -> bool {
        matches!(self.job.goal, JobGoal::Embed)
    }

    /// All its tokens are evaluated, and this came of the last one.
    pub(super) fn embed(&mut self, output: Option<&[f32]>) -> Result<NextStep, Error> {
        self.embedding = Some(normalize_vector(output)?);
        Ok(NextStep::Held)
    }

    /// Takes the file for its state, if it is to be saved.
    pub(super) fn draft(&mut self) -> Option<Draft> {
        match std::mem::replace(&mut self.job.goal, JobGoal::Load) {
            JobGoal::Save(draft) => Some(draft),
            goal => {
                self.job.goal = goal;
                None
            }
        }
    }

    /// Records that it has a slot with this many of its tokens, and when the search for one started.
    pub(super) fn seated(&mut self, held: usize, began: Instant) {
        if self.started.is_none() {
            self.started = Some(began);
            self.paged = self.model.paged.as_ref().map(|paged| {
                paged.regrow();
                paged.spent()
            });
            self.cached = held;
        }
    }

    /// Returns whether each token follows from the logits without chance.
    pub(super) fn is_deterministic(&self) -> bool {
        matches!(&self.job.goal, JobGoal::Answer(answering) if answering.sampler.deterministic)
    }

    /// Returns how many tokens may still be generated.
    pub(super) fn left(&self) -> usize {
        match &self.job.goal {
            JobGoal::Answer(answering) => answering
                .rules
                .max_tokens
                .map_or(usize::MAX, |max| max.saturating_sub(self.predicted)),
            _ => 0,
        }
    }

    /// Returns whether it is in prefill.
    pub(super) fn is_reading(&self) -> bool {
        self.predicted == 0
    }

    /// Chooses the next token by its logits, once all its tokens are evaluated.
    pub(super) fn choose(&mut self, logits: &[f32], capacity: usize) -> Result<NextStep, Error> {
        self.prefilled.get_or_insert_with(Instant::now);
        self.send_scores();
        if self.is_at_limit() {
            return Ok(NextStep::End(FinishReason::Length));
        }
        let JobGoal::Answer(answering) = &mut self.job.goal else {
            return Ok(NextStep::Held);
        };
        let AnswerParams { sampler, rules } = &mut **answering;
        let token = if self.predicted < rules.min_tokens {
            let ends = self.model.end_tokens().iter().chain(&rules.stop_tokens);
            sampler.sample(&logits_without(logits, ends))?
        } else {
            sampler.sample(logits)?
        };
        let shown = rules.shown.contains(&token);
        let (top, fewest) = (rules.log_probabilities, rules.min_tokens);
        let stops = rules.stop_tokens.contains(&token);
        // As in vLLM and OpenAI's API: the probabilities of a whole text include its last token.
        let reports_end = rules.prompt_probabilities.is_some();
        let ends = stops || (!rules.ignore_eos && self.model.is_end(token));
        self.predicted += 1;
        if let Some(top) = top.filter(|_| !ends || reports_end) {
            let report = self.report_of(logits, token, top);
            self.reports.push(report);
        }
        if ends {
            self.stop_token = stops.then_some(token);
            return Ok(NextStep::End(FinishReason::Stop));
        }
        let mut bytes = Vec::new();
        self.model.append_piece(token, shown, &mut bytes);
        // As in vLLM: a stop string is only looked for behind the tokens that the answer must have.
        let released = match self.predicted > fewest {
            true => self.text.push(&bytes),
            false => self.text.push_past_stops(&bytes),
        };
        self.send(released.text);
        if released.stopped.is_some() {
            self.stop = released.stopped;
            self.text = TextStream::default();
            return Ok(NextStep::End(FinishReason::Stop));
        }
        if self.is_at_limit() || self.tokens.len() >= capacity {
            return Ok(NextStep::End(FinishReason::Length));
        }
        self.tokens.push(token);
        Ok(NextStep::Token)
    }

    fn is_at_limit(&self) -> bool {
        self.left() == 0
    }

    fn report_of(&self, logits: &[f32], token: Token, top: usize) -> TokenReport {
        let (chosen, top) = log_probabilities(logits, token, top);
        let candidate = |(token, value): LogProbability| self.candidate(token, value);
        TokenReport {
            chosen: candidate(chosen),
            rank: count_likelier_tokens(logits, token) + 1,
            top: top.into_iter().map(candidate).collect(),
        }
    }

    fn candidate(&self, token: Token, log_probability: f32) -> Candidate {
        let mut bytes = Vec::new();
        self.model.append_piece(token, true, &mut bytes);
        Candidate {
            token,
            bytes,
            log_probability,
        }
    }

    fn send(&mut self, text: String) {
        // A token's report is sent with its text.
        if text.is_empty() && (self.reports.is_empty() || !self.text.is_settled()) {
            return;
        }
        let reports = std::mem::take(&mut self.reports);
        self.send_text(text, reports);
    }

    fn send_text(&self, text: String, reports: Vec<TokenReport>) {
        let cached = self.cached;
        self.send_event(JobEvent::Text {
            text,
            reports,
            cached,
        });
    }

    /// Sends the rest of the text, and the summary. `capacity`: tokens that the context holds.
    pub(super) fn finish(
        mut self,
        finish: FinishReason,
        written: Option<WrittenState>,
        capacity: usize,
    ) {
        if let Some(embedding) = self.embedding.take() {
            self.send_event(JobEvent::Embedded(embedding));
            return;
        }
        let text = std::mem::take(&mut self.text).finish();
        let reports = std::mem::take(&mut self.reports);
        if !text.is_empty() || !reports.is_empty() {
            self.send_text(text, reports);
        }
        let now = Instant::now();
        let started = self.started.unwrap_or(now);
        let prefilled = self.prefilled.unwrap_or(now);
        let mut timings = Timings::new(
            self.cached,
            self.prompt - self.cached,
            prefilled - started,
            self.predicted,
            now - prefilled,
        );
        timings.n_ctx = capacity;
        timings.note_speculation(self.drafts.report());
        let paged = self.model.paged.as_ref();
        let spent = self
            .paged
            .zip(paged)
            .map(|(before, paged)| paged.spent().since(&before));
        let layers = paged.is_some_and(|paged| paged.is_dense());
        timings.experts = expert_reads(
            spent,
            layers,
            self.model.unused_experts,
            self.prompt - self.cached + self.predicted,
        );
        let (stop, stop_token) = (self.stop.take(), self.stop_token);
        self.send_event(match written {
            Some(written) => JobEvent::Saved(written, Some(timings)),
            None => JobEvent::Done(AnswerSummary {
                finish,
                stop,
                stop_token,
                timings,
            }),
        });
    }

    pub(super) fn fail(self, error: Error) {
        self.send_event(JobEvent::Failed(error));
    }

    fn send_event(&self, event: JobEvent) {
        // A client that left is detected by its flag.
        let _gone = self.job.events.send((self.job.index, event));
    }
}

/// The logits with no chance for these tokens.
fn logits_without<'a>(logits: &[f32], tokens: impl Iterator<Item = &'a Token>) -> Vec<f32> {
    let mut logits = logits.to_vec();
    for &token in tokens {
        let at = usize::try_from(token).ok();
        if let Some(logit) = at.and_then(|at| logits.get_mut(at)) {
            *logit = f32::NEG_INFINITY;
        }
    }
    logits
}

//! The metrics of one request at its tier: waiting, running, duration and tokens.

use super::{Metrics, TierLabels, trace::Trace};
use prometheus_client::metrics::gauge::Gauge;
use serde_json::Value;
use std::time::Instant;
use tierbar_core::{Code, TierId, config::CacheTokens};

/// The tokens of an answer, as far as they are known.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TokenUse {
    prompt: Option<u64>,
    completion: Option<u64>,
    total: Option<u64>,
    /// Of the prompt's.
    cache: CacheTokens,
}

impl TokenUse {
    pub fn new(prompt: u64, completion: u64) -> Self {
        Self {
            prompt: Some(prompt),
            completion: Some(completion),
            ..Self::default()
        }
    }

    pub(crate) fn with_cache(self, cache: CacheTokens) -> Self {
        Self { cache, ..self }
    }

    /// Reads OpenAI's `usage`; `None` for what is none. Other servers write all sorts of values into it.
    pub(crate) fn of_usage(usage: &Value) -> Option<Self> {
        usage
            .is_object()
            .then(|| Self::from_usage(usage, "prompt", "completion"))
    }

    /// Reads the `usage` of OpenAI's responses.
    pub(crate) fn of_response(usage: &Value) -> Self {
        Self::from_usage(usage, "input", "output")
    }

    /// `prompt`, `completion`: how the figures' names begin.
    fn from_usage(usage: &Value, prompt: &str, completion: &str) -> Self {
        let tokens = |what| usage.get(format!("{what}_tokens")).and_then(Value::as_u64);
        Self {
            prompt: tokens(prompt),
            completion: tokens(completion),
            total: tokens("total"),
            cache: cache_of(&usage[format!("{prompt}_tokens_details")]),
        }
    }

    /// Returns the total, if known.
    pub fn tokens(&self) -> Option<u64> {
        let sum = || Some(self.prompt?.saturating_add(self.completion?));
        self.total.or_else(sum)
    }
}

/// Reads the details of a prompt's tokens. Of those that were written to a cache, only some servers write.
fn cache_of(details: &Value) -> CacheTokens {
    let tokens = |name| details.get(name).and_then(Value::as_u64);
    let written = tokens("cache_creation_tokens").or(tokens("cache_write_tokens"));
    let written_hour = tokens("cache_creation_1h_tokens").unwrap_or(0);
    CacheTokens {
        read: tokens("cached_tokens").unwrap_or(0),
        written: written.unwrap_or(0).saturating_sub(written_hour),
        written_hour,
    }
}

/// Adds one to a gauge while it lives.
#[derive(Debug)]
pub struct GaugeIncrement(Gauge);

impl GaugeIncrement {
    fn new(gauge: Gauge) -> Self {
        gauge.inc();
        Self(gauge)
    }
}

impl Drop for GaugeIncrement {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Metrics {
    /// Counts a request as waiting for its tier until this is dropped.
    pub fn waiting(&self, tier: &TierId) -> GaugeIncrement {
        GaugeIncrement::new(self.0.waiting.get_or_create_owned(&tier.into()))
    }

    /// Returns how many requests wait for the tier.
    pub fn waits(&self, tier: &TierId) -> u32 {
        let waiting = self.0.waiting.get(&tier.into());
        waiting.map_or(0, |waiting| u32::try_from(waiting.get()).unwrap_or(0))
    }

    /// Counts a request as holding its tier until this is dropped.
    pub fn answer(&self, tier: &TierId, arrived: Instant) -> AnswerMetrics {
        let of = TierLabels::from(tier);
        AnswerMetrics {
            _running: GaugeIncrement::new(self.0.running.get_or_create_owned(&of)),
            metrics: self.clone(),
            of,
            arrived,
            answers: false,
            chunks: 0,
            used: None,
            trace: Trace::default(),
        }
    }
}

/// A request that holds its tier. It is counted when dropped, if it was answered.
#[derive(Debug)]
pub struct AnswerMetrics {
    metrics: Metrics,
    of: TierLabels,
    arrived: Instant,
    answers: bool,
    chunks: u64,
    used: Option<TokenUse>,
    trace: Trace,
    _running: GaugeIncrement,
}

impl AnswerMetrics {
    /// With the record of its request.
    pub(crate) fn traced(mut self, trace: Trace) -> Self {
        self.trace = trace;
        self
    }

    /// Its request has ended: answered, or with this error.
    pub fn settle(&self, failure: Option<Code>) {
        match failure {
            Some(code) => self.trace.failed(code),
            None => self.trace.answered(),
        }
    }

    /// Records that the server has started to answer.
    pub fn begins(&mut self) {
        self.answers = true;
    }

    /// Records a stream's event with content.
    pub fn chunk(&mut self, now: Instant) {
        if self.chunks == 0 {
            let seconds = now.duration_since(self.arrived).as_secs_f64();
            let first_token = &self.metrics.0.first_token;
            first_token.get_or_create(&self.of).observe(seconds);
            self.trace.first_token();
        }
        self.chunks += 1;
    }

    /// Records that the stream ended with an error.
    pub fn broke(&self, code: Code) {
        self.metrics.broke(&self.of.tier, code);
    }

    /// Sets the server's own figures, in place of earlier ones.
    pub fn used(&mut self, used: TokenUse) {
        self.used = Some(used);
    }
}

impl Drop for AnswerMetrics {
    fn drop(&mut self) {
        if !self.answers {
            return;
        }
        let kept = &self.metrics.0;
        let seconds = self.arrived.elapsed().as_secs_f64();
        kept.answer.get_or_create(&self.of).observe(seconds);
        let used = self.used.unwrap_or_default();
        if let Some(prompt) = used.prompt {
            kept.prompt_tokens.get_or_create(&self.of).inc_by(prompt);
        }
        let completion = used.completion.unwrap_or(self.chunks);
        self.trace.used(used.prompt, used.cache, completion);
        let tokens = kept.completion_tokens.get_or_create(&self.of);
        tokens.inc_by(completion);
    }
}

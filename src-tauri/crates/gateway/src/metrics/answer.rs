//! One request at its tier: that it waits, that it runs, how long it takes and what it uses.

use super::{Metrics, OfTier};
use prometheus_client::metrics::gauge::Gauge;
use serde_json::Value;
use std::time::Instant;
use tierbar_core::{Code, TierId};

/// Tokens that an answer has used, as far as they were told.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Used {
    prompt: Option<u64>,
    completion: Option<u64>,
    total: Option<u64>,
}

impl Used {
    pub(crate) fn new(prompt: u64, completion: u64) -> Self {
        Self {
            prompt: Some(prompt),
            completion: Some(completion),
            total: None,
        }
    }

    /// As OpenAI's dialect tells it. Other people's servers write all sorts of things into it.
    pub(crate) fn of_usage(usage: &Value) -> Self {
        let tokens = |name| usage.get(name).and_then(Value::as_u64);
        Self {
            prompt: tokens("prompt_tokens"),
            completion: tokens("completion_tokens"),
            total: tokens("total_tokens"),
        }
    }

    /// All together, if that is told.
    pub(crate) fn tokens(&self) -> Option<u64> {
        let sum = || Some(self.prompt?.saturating_add(self.completion?));
        self.total.or_else(sum)
    }
}

/// One more in a gauge for as long as it lives.
#[derive(Debug)]
pub(crate) struct Held(Gauge);

impl Held {
    fn new(gauge: Gauge) -> Self {
        gauge.inc();
        Self(gauge)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Metrics {
    /// A request waits for its tier, until this is dropped.
    pub(crate) fn waiting(&self, tier: &TierId) -> Held {
        Held::new(self.0.waiting.get_or_create_owned(&tier.into()))
    }

    /// How many wait for the tier now.
    pub(crate) fn waits(&self, tier: &TierId) -> u32 {
        let waiting = self.0.waiting.get(&tier.into());
        waiting.map_or(0, |waiting| u32::try_from(waiting.get()).unwrap_or(0))
    }

    /// A request that arrived then has its tier, until this is dropped.
    pub(crate) fn answer(&self, tier: &TierId, arrived: Instant) -> Answer {
        let of = OfTier::from(tier);
        Answer {
            _running: Held::new(self.0.running.get_or_create_owned(&of)),
            metrics: self.clone(),
            of,
            arrived,
            answers: false,
            chunks: 0,
            used: None,
        }
    }
}

/// A request that holds its tier. Counted when it is dropped, if it has been answered.
#[derive(Debug)]
pub(crate) struct Answer {
    metrics: Metrics,
    of: OfTier,
    arrived: Instant,
    answers: bool,
    chunks: u64,
    used: Option<Used>,
    _running: Held,
}

impl Answer {
    /// The server does what it was asked for.
    pub(crate) fn begins(&mut self) {
        self.answers = true;
    }

    /// A stream's event with content has passed.
    pub(crate) fn chunk(&mut self, now: Instant) {
        if self.chunks == 0 {
            let seconds = now.duration_since(self.arrived).as_secs_f64();
            let first_token = &self.metrics.0.first_token;
            first_token.get_or_create(&self.of).observe(seconds);
        }
        self.chunks += 1;
    }

    /// The stream ends with an error.
    pub(crate) fn broke(&self, code: Code) {
        self.metrics.broke(&self.of.tier, code);
    }

    /// The server's own figures, in place of those before.
    pub(crate) fn used(&mut self, used: Used) {
        self.used = Some(used);
    }
}

impl Drop for Answer {
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
        kept.completion_tokens
            .get_or_create(&self.of)
            .inc_by(completion);
    }
}

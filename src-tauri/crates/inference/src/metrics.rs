//! The metrics of `/metrics`: counted while requests are answered, or read from the status on request.
//!
//! No client can invent a label's value: paths are the router's own, tiers those of the configuration.

pub mod answer;
mod later;
pub mod ledger;
mod machine;
pub mod trace;

pub(crate) use answer::{AnswerMetrics, TokenUse};
pub(crate) use ledger::{BudgetOverrun, Reservation};
pub use trace::Trace;

use ledger::Ledger;
use parking_lot::Mutex;
use prometheus_client::{
    encoding::{EncodeLabelSet, text},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Metric, Registry, Unit},
};
use std::sync::Arc;
use tierbar_core::{
    Code, Error, TierId, chain::ChainStatus, journal::LogEvent, queue::JobState,
    requests::RecentRequests, status::Status,
};

const PREFIX: &str = "tierbar";
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// In seconds. A cached prompt takes some milliseconds, a long one on a small machine minutes.
const FIRST_TOKEN: [f64; 14] = [
    0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
];
const ANSWER: [f64; 14] = [
    0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0,
];

/// The counters. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Metrics(Arc<Counters>);

#[derive(Debug)]
struct Counters {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    prompt_tokens: Family<TierLabels, Counter>,
    completion_tokens: Family<TierLabels, Counter>,
    first_token: Family<TierLabels, Histogram>,
    answer: Family<TierLabels, Histogram>,
    waiting: Family<TierLabels, Gauge>,
    running: Family<TierLabels, Gauge>,
    broken: Family<BreakLabels, Counter>,
    happenings: Family<LogEventLabels, Counter>,
    recent: Mutex<RecentRequests>,
    ledger: Ledger,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TierLabels {
    tier: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    path: String,
    status: u16,
    tier: String,
    code: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BreakLabels {
    tier: String,
    code: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LogEventLabels {
    kind: &'static str,
    tier: String,
}

impl From<&TierId> for TierLabels {
    fn from(tier: &TierId) -> Self {
        Self {
            tier: tier.to_string(),
        }
    }
}

impl Default for Counters {
    fn default() -> Self {
        let mut registry = Registry::with_prefix(PREFIX);
        let all = &mut registry;
        let first_token: Family<_, _> =
            Family::new_with_constructor((|| Histogram::new(FIRST_TOKEN)) as fn() -> _);
        let help = "From a request's arrival to its stream's first token, loads included";
        all.register_with_unit("first_token", help, Unit::Seconds, first_token.clone());
        let answer: Family<_, _> =
            Family::new_with_constructor((|| Histogram::new(ANSWER)) as fn() -> _);
        let help = "From a request's arrival to the end of its answer, loads included";
        all.register_with_unit("answer", help, Unit::Seconds, answer.clone());
        Self {
            requests: add(all, "requests", "Requests answered"),
            prompt_tokens: add(all, "prompt_tokens", "Prompt tokens, including cached ones"),
            completion_tokens: add(all, "completion_tokens", "Tokens of answers"),
            waiting: add(all, "requests_waiting", "Requests that wait for their tier"),
            running: add(all, "requests_running", "Requests that hold their tier"),
            broken: add(
                all,
                "broken_streams",
                "Streams that have ended with an error",
            ),
            happenings: add(all, "happenings", "Entries of the event log"),
            first_token,
            answer,
            registry,
            recent: Mutex::default(),
            ledger: Ledger::default(),
        }
    }
}

fn add<M: Metric + Clone + Default>(all: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    all.register(name, help, metric.clone());
    metric
}

impl Metrics {
    /// Counts an event of the event log.
    pub fn happened(&self, what: &LogEvent) {
        let tier = what.tier.as_ref().map(TierId::to_string);
        let labels = LogEventLabels {
            kind: what.kind.as_str(),
            tier: tier.unwrap_or_default(),
        };
        self.0.happenings.get_or_create(&labels).inc();
    }

    /// Counts a request that was answered over HTTP: its path as documented, its status, the tier and the error's code, empty for none.
    pub fn answered(&self, path: String, status: u16, tier: &str, code: &'static str) {
        let labels = RequestLabels {
            path,
            status,
            tier: tier.to_owned(),
            code,
        };
        self.0.requests.get_or_create(&labels).inc();
    }

    /// Counts a stream that ended with an error.
    pub fn broke(&self, tier: &str, code: Code) {
        let labels = BreakLabels {
            tier: tier.to_owned(),
            code: code.as_str(),
        };
        self.0.broken.get_or_create(&labels).inc();
    }

    /// Renders all metrics in OpenMetrics' text format: the counters, and gauges of this moment. `bytes` is the queue's
    /// size on disk.
    ///
    /// # Errors
    /// `Internal` if it cannot be written.
    pub fn render(
        &self,
        status: &Status,
        chains: &[ChainStatus],
        jobs: &[(JobState, u64)],
        bytes: u64,
    ) -> Result<String, Error> {
        let mut now = machine::gauges(status);
        later::chains(&mut now, chains);
        later::queue(&mut now, jobs, bytes);
        let mut text = String::new();
        text::encode_registry(&mut text, &self.0.registry)
            .and_then(|()| text::encode(&mut text, &now))
            .map_err(|_| Error::new(Code::Internal, "the metrics cannot be written"))?;
        Ok(text)
    }
}

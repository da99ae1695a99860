//! What is kept of each request for the list of the last ones: written while it is answered, listed once it has ended.

use super::{
    Metrics,
    ledger::{Attempt, Reservation},
};
use jiff::Timestamp;
use parking_lot::Mutex;
use std::{sync::Arc, time::Instant};
use tierbar_core::{
    Code, Error, ModelId, TierId,
    config::{CacheTokens, Dollars, Prices},
    requests::{RequestOutcome, RequestRecord},
};

tokio::task_local! {
    /// The path that the client of this task called; `None` for the indexer.
    static ROUTE: Option<String>;
}

/// Runs `answering` for a client that called this path.
pub async fn of_route<F: Future>(route: String, answering: F) -> F::Output {
    ROUTE.scope(Some(route), answering).await
}

/// Runs `answering` for the indexer of documents: its requests are counted with their tokens and energy, and neither listed nor counted
/// as requests, because no client made them.
pub async fn of_indexer<F: Future>(answering: F) -> F::Output {
    ROUTE.scope(None, answering).await
}

/// Of one request, over all of its attempts. The default is of a request that is not listed.
#[derive(Debug, Clone, Default)]
pub struct Trace(Option<Arc<TraceState>>);

#[derive(Debug)]
struct TraceState {
    metrics: Metrics,
    arrived: Instant,
    /// It is part of the indexer's work.
    of_indexer: bool,
    record: Mutex<RequestRecord>,
    bill: Mutex<Bill>,
}

/// What the ledger needs to know of a request.
#[derive(Debug, Default)]
struct Bill {
    /// The last.
    attempt: Option<Attempt>,
    /// Empty for none.
    chain: String,
    /// Those of the prompt's tokens that have prices of their own.
    cache: CacheTokens,
    /// For its attempts at endpoints, until it has ended.
    reserved: Vec<Reservation>,
}

impl Metrics {
    /// Begins the record of a request. `path` is listed for one that came from inside the host; `client` is its API key.
    pub fn trace(&self, path: &str, client: Option<String>, arrived: Instant) -> Trace {
        let at = Timestamp::now() - arrived.elapsed();
        let route = ROUTE.try_with(Clone::clone);
        let of_indexer = matches!(route, Ok(None));
        let route = route.ok().flatten();
        let record = RequestRecord {
            at_ms: u64::try_from(at.as_millisecond()).unwrap_or_default(),
            path: route.unwrap_or_else(|| path.to_owned()),
            client,
            ..RequestRecord::default()
        };
        Trace(Some(Arc::new(TraceState {
            metrics: self.clone(),
            arrived,
            of_indexer,
            record: Mutex::new(record),
            bill: Mutex::default(),
        })))
    }

    /// Returns the last requests that have ended, newest first.
    pub fn recent_requests(&self, limit: usize) -> Vec<RequestRecord> {
        self.0.recent.lock().newest(limit)
    }
}

impl Trace {
    /// A tier has been leased for it.
    pub fn leased(&self, tier: &TierId, model: &ModelId) {
        self.note(|record, waited_ms| {
            record.tier = Some(tier.clone());
            record.model = Some(model.clone());
            record.waited_ms = Some(waited_ms);
        });
    }

    /// The tier that was leased begins to work; an endpoint has `prices`, if they are known.
    pub fn begins(&self, elsewhere: bool, prices: Option<Prices>) {
        if let Some(traced) = &self.0 {
            traced.bill.lock().attempt = Some(Attempt {
                at: Instant::now(),
                millijoules: traced.metrics.0.ledger.millijoules(),
                elsewhere,
                prices,
            });
        }
    }

    /// It was asked of this chain.
    pub(crate) fn of_chain(&self, chain: &TierId) {
        if let Some(traced) = &self.0 {
            chain.as_str().clone_into(&mut traced.bill.lock().chain);
        }
    }

    /// Holds what an attempt may cost until the request has ended.
    pub(crate) fn reserve(&self, reserved: Reservation) {
        if let Some(traced) = &self.0 {
            traced.bill.lock().reserved.push(reserved);
        }
    }

    pub(super) fn first_token(&self) {
        self.note(|record, first_token_ms| record.first_token_ms = Some(first_token_ms));
    }

    pub(super) fn used(&self, prompt: Option<u64>, cache: CacheTokens, completion: u64) {
        if let Some(traced) = &self.0 {
            traced.bill.lock().cache = cache;
        }
        self.note(|record, _| {
            record.prompt_tokens = prompt;
            record.completion_tokens = Some(completion);
        });
    }

    /// It has its whole answer, after what may have failed before.
    pub fn answered(&self) {
        self.note(|record, _| {
            record.outcome = RequestOutcome::Answered;
            record.code = None;
        });
    }

    /// It ends with this error, unless it is tried elsewhere.
    pub fn failed(&self, code: Code) {
        self.note(|record, _| {
            record.outcome = RequestOutcome::Failed;
            record.code = Some(code.as_str().to_owned());
        });
    }

    /// As [`Self::failed`], if that is an error.
    pub fn check<T>(&self, outcome: &Result<T, Error>) {
        if let Err(error) = outcome {
            self.failed(error.code);
        }
    }

    /// Changes the record, at so many milliseconds after the arrival.
    fn note(&self, change: impl FnOnce(&mut RequestRecord, u64)) {
        if let Some(traced) = &self.0 {
            change(&mut traced.record.lock(), traced.so_far_ms());
        }
    }
}

impl TraceState {
    fn so_far_ms(&self) -> u64 {
        u64::try_from(self.arrived.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Drop for TraceState {
    fn drop(&mut self) {
        let mut record = RequestRecord {
            duration_ms: self.so_far_ms(),
            ..std::mem::take(self.record.get_mut())
        };
        let bill = self.bill.get_mut();
        if let Some(attempt) = bill.attempt {
            let reserved = bill.reserved.last().map(|reserved| reserved.amount);
            let requests = u64::from(!self.of_indexer);
            let (ledger, chain) = (&self.metrics.0.ledger, &bill.chain);
            let taken = ledger.add(requests, &record, attempt, chain, bill.cache, reserved);
            record.millijoules = Some(taken.millijoules).filter(|some| *some > 0);
            record.paid = Some(taken.paid).filter(|paid| *paid != Dollars::default());
        }
        if !self.of_indexer {
            self.metrics.0.recent.lock().add(record);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::TokenUse;

    #[tokio::test]
    async fn a_request_is_listed_once_its_last_attempt_is_gone() {
        let metrics = Metrics::default();
        let (fast, heavy) = (TierId::new("fast").unwrap(), TierId::new("heavy").unwrap());
        let model = ModelId("small".to_owned());
        let trace = of_route("/api/chat".to_owned(), async {
            metrics.trace(
                "/v1/chat/completions",
                Some("phone".to_owned()),
                Instant::now(),
            )
        })
        .await;
        trace.leased(&heavy, &model);
        trace.failed(Code::Unreachable);
        trace.leased(&fast, &model);
        let mut answer = metrics.answer(&fast, Instant::now()).traced(trace.clone());
        answer.begins();
        answer.chunk(Instant::now());
        answer.used(TokenUse::new(30, 5));
        trace.answered();
        drop(trace);
        assert_eq!(metrics.recent_requests(9), []);
        drop(answer);
        let listed = metrics.recent_requests(9);
        assert_eq!(listed.len(), 1);
        let record = &listed[0];
        assert_eq!((record.id, record.path.as_str()), (1, "/api/chat"));
        assert_eq!(record.client.as_deref(), Some("phone"));
        assert_eq!(record.tier.as_ref(), Some(&fast));
        assert_eq!(
            (record.prompt_tokens, record.completion_tokens),
            (Some(30), Some(5))
        );
        assert_eq!(
            (record.outcome, &record.code),
            (RequestOutcome::Answered, &None)
        );
        assert!(record.first_token_ms.is_some() && record.waited_ms.is_some());
    }

    #[test]
    fn a_request_without_an_end_was_cancelled() {
        let metrics = Metrics::default();
        drop(metrics.trace("/v1/chat/completions", None, Instant::now()));
        drop(Trace::default());
        let listed = metrics.recent_requests(9);
        assert_eq!(listed.len(), 1);
        assert_eq!(listed[0].path, "/v1/chat/completions");
        assert_eq!(listed[0].outcome, RequestOutcome::Cancelled);
    }
}

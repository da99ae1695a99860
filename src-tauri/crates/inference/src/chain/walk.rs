//! From step to step, until one has a first word.

use super::{
    ChainRequest,
    budget::Budget,
    cost_bound::SURCHARGED,
    credential, mark,
    triage::{TriageOutcome, triage},
    tried_steps::TriedSteps,
};
use crate::{
    Inference,
    relay::{
        attempt::{self, AttemptFailure, ServerAnswer},
        gathered,
    },
    request::Request,
    stream_meter::StreamReading,
};
use futures_util::future::{Either, select};
use serde_json::{Map, Value, json};
use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tierbar_core::{
    Code, Error, TierId,
    chain::{Gate, Outcome},
    config::EndpointEngine,
};
use tokio::time::{Instant, sleep, timeout, timeout_at};

/// The pause before an endpoint is tried again; it doubles each time.
const BACK_OFF: Duration = Duration::from_millis(500);
/// What a limit may ask for and still be waited for.
const SHORT_LIMIT_MS: u64 = 2000;

/// The fields that are read or set here, besides those that change the price.
const READ: [&str; 6] = [
    "best_of",
    "max_completion_tokens",
    "max_tokens",
    "n",
    "stream",
    "stream_options",
];

#[derive(Debug)]
pub struct Walk {
    inference: Arc<Inference>,
    asked: ChainRequest,
    request: Request,
    /// The answer is to come whole. Each step that can stream does all the same, which shows when it begins to answer.
    gathers: bool,
    budget: Budget,
    /// The tiers in the order in which they are tried.
    order: Vec<TierId>,
    /// The next step to try.
    next: AtomicUsize,
    /// What comes of each step, while it does.
    pub(super) tried: TriedSteps,
}

impl Walk {
    pub(super) fn new(
        inference: Arc<Inference>,
        asked: ChainRequest,
        mut request: Request,
    ) -> Self {
        let fields = request.content.fields();
        let names = READ.into_iter().chain(SURCHARGED.map(|(name, _)| name));
        let read = names.filter_map(|name| Some((name.to_owned(), fields.get(name)?.clone())));
        let mut object = read.collect();
        let mut budget = Budget::new(asked.config.cost, asked.config.budget, &mut object);
        budget.note(&request.content);
        if let Some(original) = &mut request.original {
            budget.limit(original);
        }
        let gathers = !request.stream;
        if gathers && can_stream(&object) {
            request.stream = true;
            request.reads = StreamReading::Values;
            request_stream(&mut object);
        }
        let limited = ["max_tokens", "stream", "stream_options"].into_iter();
        let changed = limited.chain(SURCHARGED.map(|(name, _)| name));
        let changed =
            changed.filter(|name| object.get(*name) != request.content.fields().get(*name));
        let changes: Vec<_> = changed
            .map(|name| (name, object.get(name).cloned()))
            .collect();
        let stream = changes.iter().find(|(name, _)| *name == "stream");
        if let (Some(original), Some(stream)) = (&mut request.original, stream) {
            original.change(std::slice::from_ref(stream));
        }
        request.content = request.content.with(&changes);
        Self {
            order: asked.config.tiers().cloned().collect(),
            inference,
            asked,
            request,
            gathers,
            budget,
            next: AtomicUsize::new(0),
            tried: TriedSteps::default(),
        }
    }

    /// The first answer, or what each step said if none came in time.
    pub(super) async fn walk(mut self) -> Result<ServerAnswer, Error> {
        let time = self.asked.config.time.0;
        let mut until = Instant::now() + time;
        if self.asked.config.triage {
            self.triage().await;
        }
        loop {
            let Ok(found) = timeout_at(until, self.race()).await else {
                return Err(self.tried.error(&self.asked.name, Some(time)));
            };
            let Some((step, sent)) = found else {
                return Err(self.tried.error(&self.asked.name, None));
            };
            let sent = match sent {
                // None of it was sent yet: if it breaks off, the next step answers.
                ServerAnswer::Streaming(mut answer) if self.gathers => {
                    match gathered::gather_within(&mut answer, time).await {
                        Ok(whole) => ServerAnswer::Whole(whole),
                        Err(error) => {
                            answer.ends(Some(&error));
                            self.broke(step, error);
                            until = Instant::now() + time;
                            continue;
                        }
                    }
                }
                sent => sent,
            };
            return Ok(self.annotate(step, sent));
        }
    }

    /// Lets the tiers of this machine go first if the message needs no cloud.
    async fn triage(&mut self) {
        let steps = std::mem::take(&mut self.order);
        let is_endpoint = |tier: &TierId| self.endpoint(tier).is_some();
        let (endpoints, here): (Vec<_>, Vec<_>) = steps.iter().cloned().partition(is_endpoint);
        self.order = steps;
        if endpoints.is_empty() || here.is_empty() {
            let all = if here.is_empty() { "every" } else { "no" };
            let words = format!("not triaged: {all} step is an endpoint");
            self.tried.log().triage = Some(words);
            return;
        }
        let TriageOutcome { stays_here, why } = triage(&self.inference, &self.request).await;
        if !stays_here {
            self.tried.log().triage = Some(why);
            return;
        }
        let words = format!("{why}, so this machine answers first");
        self.tried.log().triage = Some(words);
        for tier in &endpoints {
            self.tried.passed_over(tier, why.clone(), None);
        }
        self.order = here.into_iter().chain(endpoints).collect();
    }

    /// An answer broke off before its client saw any of it; it may still have to be paid for.
    fn broke(&self, step: usize, error: Error) {
        let Some(tier) = self.order.get(step) else {
            return;
        };
        if let Some(engine) = self.endpoint(tier) {
            self.lost(&engine);
        }
        self.tried.failed(tier, error);
    }

    /// The endpoint took the request and gave nothing.
    fn lost(&self, engine: &EndpointEngine) {
        let metrics = &self.inference.metrics;
        self.budget.lost(&self.asked.name, engine, metrics);
    }

    fn annotate(&self, step: usize, sent: ServerAnswer) -> ServerAnswer {
        let fallback = self.order.first().filter(|_| step > 0);
        if let Some(first) = fallback {
            self.tried.log().fallback = Some(first.clone());
        }
        let tier = self.order.get(step);
        let here = tier.is_some_and(|tier| self.endpoint(tier).is_none());
        let marked = self.asked.mark
            && fallback.is_some()
            && here
            && !mark::is_bound(self.request.content.fields());
        mark::annotate(sent, &self.asked.name, &self.tried, marked, &self.request)
    }

    /// The steps one after another; after a silence, and if that is wanted, two at a time.
    async fn race(&self) -> Option<(usize, ServerAnswer)> {
        let hedge = self.asked.config.hedge.0;
        if hedge.is_zero() {
            return self.in_turn().await;
        }
        let has_begun = AtomicBool::new(false);
        let first = pin!(self.in_turn());
        let second = pin!(async {
            sleep(hedge).await;
            has_begun.store(true, Ordering::Relaxed);
            self.in_turn().await
        });
        match select(first, second).await {
            Either::Left((Some(answer), _)) | Either::Right((Some(answer), _)) => Some(answer),
            // No step is left for one that has not begun.
            Either::Left((None, _)) if !has_begun.load(Ordering::Relaxed) => None,
            Either::Left((None, other)) => other.await,
            Either::Right((None, other)) => other.await,
        }
    }

    async fn in_turn(&self) -> Option<(usize, ServerAnswer)> {
        loop {
            let step = self.next.fetch_add(1, Ordering::Relaxed);
            let tier = self.order.get(step)?;
            let sent = match self.endpoint(tier) {
                Some(engine) => self.ask_endpoint(tier, &engine).await,
                None => {
                    let request = self.request.clone();
                    let first = attempt::first_word(&self.inference, tier, request).await;
                    let failed = |failed: AttemptFailure| self.tried.failed(tier, failed.error);
                    first.map_err(failed).ok()
                }
            };
            if let Some(sent) = sent {
                return Some((step, sent));
            }
        }
    }

    fn endpoint(&self, tier: &TierId) -> Option<EndpointEngine> {
        self.inference.endpoint_of(tier)
    }

    async fn ask_endpoint(&self, tier: &TierId, engine: &EndpointEngine) -> Option<ServerAnswer> {
        let (wait, mut pause) = (self.asked.config.wait.0, BACK_OFF);
        for again in (0..=self.asked.config.retries).rev() {
            if let Some(why) = self.budget.too_dear(engine) {
                self.tried.too_dear(tier, why.into());
                return None;
            }
            let metrics = &self.inference.metrics;
            let reserved = self.budget.reserve(&self.asked.name, engine, metrics);
            let refused = |refused| self.tried.too_dear(tier, refused);
            let reserved = reserved.map_err(refused).ok()?;
            let endpoints = &self.inference.endpoints;
            let trial = endpoints.enter(tier, credential(&engine.endpoint));
            let closed = |gate: Gate| {
                let wait = gate.closed_for();
                self.tried.passed_over(tier, gate_reason(gate), wait);
            };
            let mut trial = trial.map_err(closed).ok()?;
            let first_word = attempt::first_word(&self.inference, tier, self.request.clone());
            let failed = match timeout(wait, first_word).await {
                Ok(Ok(mut sent)) => {
                    match &mut sent {
                        ServerAnswer::Streaming(answer) => {
                            trial.begun();
                            answer.trial = Some(trial);
                        }
                        ServerAnswer::Whole(_) => trial.settle(Outcome::Answered),
                    }
                    if let Some(reserved) = reserved {
                        self.request.trace.reserve(reserved);
                    }
                    return Some(sent);
                }
                Ok(Err(failed)) => failed,
                Err(_) => AttemptFailure::from(first_token_error(tier, wait)),
            };
            let AttemptFailure { error, outcome } = failed;
            trial.settle(outcome);
            drop(trial);
            self.tried.failed(tier, error);
            if outcome == Outcome::Failed {
                self.lost(engine);
            }
            drop(reserved);
            match outcome {
                Outcome::Failed if again > 0 => sleep(pause).await,
                Outcome::Limited {
                    for_ms: Some(for_ms @ 0..=SHORT_LIMIT_MS),
                } if again > 0 => sleep(Duration::from_millis(for_ms)).await,
                _ => return None,
            }
            pause *= 2;
        }
        None
    }
}

fn first_token_error(tier: &TierId, wait: Duration) -> Error {
    let message = format!("{tier} gave no first token in {} s", wait.as_secs());
    Error::new(Code::WorkerTimeout, message)
}

fn gate_reason(gate: Gate) -> String {
    let seconds = |ms: u64| ms.div_ceil(1000);
    match gate {
        Gate::Open => "it is available".to_owned(),
        Gate::Trying => "it failed recently, and one request is testing it".to_owned(),
        Gate::Cooling { for_ms } => format!("it is rate limited for {} s", seconds(for_ms)),
        Gate::Broken { for_ms } => {
            let seconds = seconds(for_ms);
            format!("it failed too often and is skipped for {seconds} s")
        }
        Gate::Refused { for_ms } => {
            let seconds = seconds(for_ms);
            format!(
                "its server refused the key; it is tried again in {seconds} s, or with another key"
            )
        }
    }
}

/// The best of several is known at the end of all.
fn can_stream(request: &Map<String, Value>) -> bool {
    let of = request.get("best_of").and_then(Value::as_u64);
    of.is_none_or(|of| of <= 1)
}

fn request_stream(request: &mut Map<String, Value>) {
    request.insert("stream".to_owned(), true.into());
    request.insert("stream_options".to_owned(), json!({"include_usage": true}));
}

//! From step to step, until one has a first word.

use super::{Asked, credential, mark, tried::Tried};
use crate::{
    Gateway,
    openai::relay::{
        Ask,
        attempt::{self, Failed, Sent},
    },
};
use futures_util::future::{Either, select};
use serde::Deserialize;
use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tierbar_core::{
    Code, Error, TierId,
    chain::{Gate, Outcome},
    config::{Dollars, EndpointEngine, Engine},
};
use tokio::time::{sleep, timeout};

/// Before an endpoint is asked again; twice as long each time.
const BACK_OFF: Duration = Duration::from_millis(500);
/// What a limit may ask for and still be waited for.
const SHORT_LIMIT_MS: u64 = 2000;
/// Tokens of an answer whose request does not say how long it may be.
const UNTOLD_ANSWER: u64 = 4096;
/// A token is at least so long in most text.
const BYTES_PER_TOKEN: u64 = 3;

pub(super) struct Walk {
    gateway: Arc<Gateway>,
    asked: Asked,
    ask: Ask,
    /// The step that nobody has taken yet.
    next: AtomicUsize,
    tried: Tried,
}

impl Walk {
    pub(super) fn new(gateway: Arc<Gateway>, asked: Asked, ask: Ask) -> Self {
        Self {
            gateway,
            asked,
            ask,
            next: AtomicUsize::new(0),
            tried: Tried::default(),
        }
    }

    /// What comes of each step, while it does.
    pub(super) fn tried(&self) -> Tried {
        self.tried.clone()
    }

    /// # Errors
    /// What each step said, if none answered in time.
    pub(super) async fn walk(self) -> Result<Sent, Error> {
        let time = self.asked.config.time.0;
        let answered = timeout(time, self.race()).await;
        let name = &self.asked.name;
        match answered {
            Ok(Some((step, sent))) => {
                let first = self.asked.config.tiers().next();
                let tier = self.tier(step);
                let fallback = first.filter(|_| step > 0);
                if let (Some(first), Some(tier)) = (fallback, tier) {
                    self.tried.fell_back(first, tier);
                }
                let here = tier.is_some_and(|tier| self.endpoint(tier).is_none());
                let marked = self.asked.mark && fallback.is_some() && here;
                Ok(mark::told(sent, name, &self.tried, marked, self.ask.path))
            }
            Ok(None) => Err(self.tried.error(name, None)),
            Err(_) => Err(self.tried.error(name, Some(time))),
        }
    }

    /// The steps one after another; after a silence, and if that is wanted, two at a time.
    async fn race(&self) -> Option<(usize, Sent)> {
        let hedge = self.asked.config.hedge.0;
        if hedge.is_zero() {
            return self.in_turn().await;
        }
        let first = pin!(self.in_turn());
        let second = pin!(async {
            sleep(hedge).await;
            self.in_turn().await
        });
        match select(first, second).await {
            Either::Left((Some(answer), _)) | Either::Right((Some(answer), _)) => Some(answer),
            Either::Left((None, other)) => other.await,
            Either::Right((None, other)) => other.await,
        }
    }

    async fn in_turn(&self) -> Option<(usize, Sent)> {
        loop {
            let step = self.next.fetch_add(1, Ordering::Relaxed);
            let tier = self.tier(step)?;
            let sent = match self.endpoint(tier) {
                Some(engine) => self.ask_endpoint(tier, &engine).await,
                None => match attempt::first_word(&self.gateway, tier, self.ask.clone()).await {
                    Ok(sent) => Some(sent),
                    Err(failed) => {
                        self.tried.failed(tier, failed.error);
                        None
                    }
                },
            };
            if let Some(sent) = sent {
                return Some((step, sent));
            }
        }
    }

    fn tier(&self, step: usize) -> Option<&TierId> {
        self.asked.config.tiers().nth(step)
    }

    fn endpoint(&self, tier: &TierId) -> Option<EndpointEngine> {
        match &self.gateway.services.config().tiers.get(tier)?.engine {
            Engine::Endpoint(engine) => Some(engine.clone()),
            _ => None,
        }
    }

    async fn ask_endpoint(&self, tier: &TierId, engine: &EndpointEngine) -> Option<Sent> {
        if let Some(why) = self.too_dear(engine) {
            self.tried.passed_over(tier, why, None);
            return None;
        }
        let (wait, mut pause) = (self.asked.config.wait.0, BACK_OFF);
        for again in (0..=self.asked.config.retries).rev() {
            let asking = match self
                .gateway
                .chains
                .enter(tier, credential(&engine.endpoint))
            {
                Ok(asking) => asking,
                Err(closed) => {
                    self.tried
                        .passed_over(tier, words(closed), closed.closed_for());
                    return None;
                }
            };
            let first_word = attempt::first_word(&self.gateway, tier, self.ask.clone());
            let failed = match timeout(wait, first_word).await {
                Ok(Ok(sent)) => {
                    asking.told(Outcome::Answered);
                    return Some(sent);
                }
                Ok(Err(failed)) => failed,
                Err(_) => Failed::from(silent(tier, wait)),
            };
            let Failed { error, outcome } = failed;
            asking.told(outcome);
            self.tried.failed(tier, error);
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

    /// Why the endpoint would cost more than the request may.
    fn too_dear(&self, engine: &EndpointEngine) -> Option<String> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Limits {
            max_tokens: Option<u64>,
            max_completion_tokens: Option<u64>,
            n: Option<u64>,
        }
        let most = self.asked.config.cost;
        if most == Dollars::default() {
            return None;
        }
        let (Some(input), Some(output)) = (engine.input_price, engine.output_price) else {
            return Some(format!("it has no price, and a request may cost {most}"));
        };
        let limits: Limits = serde_json::from_slice(&self.ask.body).unwrap_or_default();
        let answer = limits.max_completion_tokens.or(limits.max_tokens);
        let answers = limits.n.unwrap_or(1);
        let prompt = self.ask.body.len() as u64 / BYTES_PER_TOKEN;
        let answer = answer.unwrap_or(UNTOLD_ANSWER).saturating_mul(answers);
        let cost = input.of_tokens(prompt).plus(output.of_tokens(answer));
        (cost > most).then(|| format!("it would cost up to {cost}, and a request may cost {most}"))
    }
}

fn silent(tier: &TierId, wait: Duration) -> Error {
    let message = format!("{tier} has not said a word in {} s", wait.as_secs());
    Error::new(Code::WorkerTimeout, message)
}

fn words(gate: Gate) -> String {
    let seconds = |ms: u64| ms.div_ceil(1000);
    match gate {
        Gate::Open => "it may be asked".to_owned(),
        Gate::Trying => "it failed lately, and one request is trying it".to_owned(),
        Gate::Cooling { for_ms } => format!("its limit lasts for {} s", seconds(for_ms)),
        Gate::Broken { for_ms } => {
            format!(
                "it failed too often and is left alone for {} s",
                seconds(for_ms)
            )
        }
        Gate::Refused { for_ms } => {
            let seconds = seconds(for_ms);
            format!(
                "its server has refused the key; it is asked again in {seconds} s, or with another key"
            )
        }
    }
}

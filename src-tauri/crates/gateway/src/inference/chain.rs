//! A chain: its steps are tried in order until one answers, and an endpoint that fails is skipped for a while.
//!
//! Another step is tried only before the first token of an answer has passed; an answer that breaks after it ends with an error.

mod budget;
pub(crate) mod limits;
mod mark;
mod tried;
mod walk;

use super::{
    Inference,
    hints::Hints,
    relay::{Begun, UpstreamRequest, Way, streaming::Beginning},
    source::Source,
};
use axum::http::HeaderName;
use parking_lot::Mutex;
use std::sync::{Arc, atomic::AtomicBool};
use tierbar_core::{
    Code, Error, TierId,
    chain::{ChainStatus, Endpoints, Gate, Outcome, StepStatus},
    config::{ChainConfig, Engine, Step, server_of},
};
use tokio::time::Instant;
use tried::Tried;
use walk::Walk;

pub(crate) static CHAIN: HeaderName = HeaderName::from_static("x-tierbar-chain");

/// Marks a failed response whose request may be queued, as if its client had allowed it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MayWait;

/// The state of the endpoints since the host started.
#[derive(Debug, Clone)]
pub struct Chains {
    began: Instant,
    endpoints: Arc<Mutex<Endpoints>>,
}

impl Default for Chains {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            endpoints: Arc::default(),
        }
    }
}

impl Chains {
    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Whether the endpoint may be tried now. The outcome is noted through what this returns.
    fn enter(&self, tier: &TierId, credential: &str) -> Result<Trial, Gate> {
        let gate = self.endpoints.lock().enter(tier, credential, self.now());
        match gate {
            Gate::Open => Ok(Trial {
                chains: self.clone(),
                tier: tier.clone(),
                credential: credential.to_owned(),
                outcome: Some(Outcome::NotAsked),
            }),
            closed => Err(closed),
        }
    }

    /// The key of this server was given anew.
    pub(crate) fn forget(&self, server: &str) {
        self.endpoints.lock().forget(server);
    }
}

/// A request to an endpoint. Its outcome is known at its end, because an answer may break off after its first token.
#[derive(Debug)]
pub(crate) struct Trial {
    chains: Chains,
    tier: TierId,
    credential: String,
    /// What is noted at its end: that it was not asked after all, or, once it has begun, nothing more.
    outcome: Option<Outcome>,
}

impl Trial {
    fn note(&self, outcome: Outcome) {
        let now = self.chains.now();
        let mut endpoints = self.chains.endpoints.lock();
        endpoints.note(&self.tier, &self.credential, outcome, now);
    }

    /// The first token has arrived. The client may disconnect at any moment, which does not count against the endpoint.
    pub(crate) fn begun(&mut self) {
        self.note(Outcome::Begun);
        self.outcome = None;
    }

    /// What it has come to.
    pub(crate) fn settle(&mut self, outcome: Outcome) {
        self.outcome = Some(outcome);
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        if let Some(outcome) = self.outcome {
            self.note(outcome);
        }
    }
}

/// A chain that a request asks for.
pub(crate) struct ChainRequest {
    name: TierId,
    config: ChainConfig,
    /// An answer from this machine in the first step's place says so in its text.
    mark: bool,
}

/// The chain that a request names, by its header or as its model.
///
/// # Errors
/// `ModelUnknown` for a header that names none; `BadRequest` for a request that no chain answers.
pub(crate) fn find(
    inference: &Inference,
    model: Option<&str>,
    hints: &Hints,
    speaks: bool,
) -> Result<Option<ChainRequest>, Error> {
    let config = inference.services.config();
    let find = |name: &str| config.chains.iter().find(|(id, _)| id.as_str() == name);
    let found = match hints.chain.as_deref() {
        Some(named) => Some(find(named).ok_or_else(|| unknown(named, config.chains.keys()))?),
        None => model.and_then(find),
    };
    let Some((name, chain)) = found else {
        return Ok(None);
    };
    if !speaks {
        let message = format!("the chain \"{name}\" answers chats and completions");
        return Err(Error::new(Code::BadRequest, message).hint("name a tier for this request"));
    }
    Ok(Some(ChainRequest {
        name: name.clone(),
        config: chain.clone(),
        mark: hints.mark.unwrap_or(chain.mark),
    }))
}

fn unknown<'a>(named: &str, chains: impl Iterator<Item = &'a TierId>) -> Error {
    let shown: String = named.chars().take(100).collect();
    let names: Vec<_> = chains.map(TierId::as_str).collect();
    let hint = if names.is_empty() {
        "the configuration has no chains".to_owned()
    } else {
        format!("use one of: {}", names.join(", "))
    };
    let message = format!("there is no chain \"{shown}\"");
    Error::new(Code::ModelUnknown, message).hint(hint)
}

/// Why no step answered is the error of what begins here.
pub(crate) fn begin(
    inference: Arc<Inference>,
    asked: ChainRequest,
    request: UpstreamRequest,
) -> Begun {
    let (stream, name) = (request.stream, asked.name.clone());
    let may_wait = asked.config.may_wait();
    let metrics = inference.metrics.clone();
    let walk = Walk::new(inference, asked, request);
    let tried = walk.tried();
    let beginning = Beginning {
        sent: Box::pin(walk.walk()),
        // Which tier will answer, and whether it loads, is not known before it does.
        loaded: Arc::new(AtomicBool::new(true)),
        failed: {
            let name = name.clone();
            Box::new(move |code| metrics.broke(name.as_str(), code))
        },
    };
    Begun {
        beginning,
        stream,
        way: Way::Chain(Steps {
            name,
            ends_in_queue: may_wait,
            tried,
        }),
    }
}

/// How far a chain has come with a request.
pub(crate) struct Steps {
    name: TierId,
    ends_in_queue: bool,
    tried: Tried,
}

impl Steps {
    /// Whether the chain ends in the queue and a step may answer later.
    pub(crate) fn may_wait(&self) -> bool {
        self.ends_in_queue && self.tried.may_pass()
    }

    pub(crate) fn source(&self) -> Source {
        Source {
            chain: Some(self.name.clone()),
            tried: self.tried.codes(),
            fallback_from: self.tried.fallback(),
            ..Source::default()
        }
    }
}

impl Inference {
    /// The chains, and which of their endpoints may be asked now.
    pub(crate) fn chain_status(&self) -> Vec<ChainStatus> {
        let (config, now) = (self.services.config(), self.chains.now());
        let endpoints = self.chains.endpoints.lock();
        let endpoint = |step: &Step| {
            let tier = step.tier()?;
            let Engine::Endpoint(engine) = &config.tiers.get(tier)?.engine else {
                return None;
            };
            let server = credential(&engine.endpoint);
            Some(StepStatus::Endpoint {
                step: tier.clone(),
                server: server.to_owned(),
                gate: endpoints.gate(tier, server, now),
            })
        };
        let status =
            |step: &Step| endpoint(step).unwrap_or_else(|| StepStatus::Here { step: step.clone() });
        let chains = config.chains.iter().map(|(name, chain)| ChainStatus {
            name: name.clone(),
            steps: chain.steps.iter().map(status).collect(),
        });
        chains.collect()
    }
}

/// What endpoints of one server share: its key.
fn credential(url: &str) -> &str {
    server_of(url).map_or("", |(_, server)| server)
}

#[cfg(test)]
mod tests;

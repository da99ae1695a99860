//! A chain: its steps are tried in order until one answers, and an endpoint that fails is skipped for a while.
//!
//! Another step is tried only before the first token of an answer has passed; an answer that breaks after it ends with an error.

mod budget;
mod cost_bound;
mod data_size;
mod mark;
mod triage;
pub mod tried_steps;
pub mod walk;

use super::{
    Inference, hints::Hints, relay::streaming::Beginning, request::Request, source::Source,
};
use std::sync::{Arc, atomic::AtomicBool};
use tierbar_core::{
    Code, Error, TierId, bad_request,
    chain::{ChainStatus, StepStatus},
    config::{ChainConfig, EndpointEngine, Engine, Step, server_of},
    nearest::suggest,
};
pub use triage::begin_exam as begin_triage_exam;
use tried_steps::TriedSteps;
use walk::Walk;

/// A chain that a request asks for.
#[derive(Debug)]
pub struct ChainRequest {
    name: TierId,
    config: ChainConfig,
    /// An answer from this machine in the first step's place says so in its text.
    mark: bool,
}

/// The chain that a request names, by its header or as its model.
///
/// # Errors
/// `ModelUnknown` for a header that names none; `BadRequest` for a request that no chain answers.
pub fn find(
    inference: &Inference,
    model: Option<&str>,
    hints: &Hints,
    speaks: bool,
) -> Result<Option<ChainRequest>, Error> {
    let config = inference.services.config();
    let find = |name: &str| config.chains.iter().find(|(id, _)| id.as_str() == name);
    let found = match hints.chain.as_deref() {
        Some(named) => {
            Some(find(named).ok_or_else(|| unknown_chain_error(named, config.chains.keys()))?)
        }
        None => model.and_then(find),
    };
    let Some((name, chain)) = found else {
        return Ok(None);
    };
    if !speaks {
        let message = format!("the chain \"{name}\" answers chats and completions");
        return Err(bad_request(message).hint("name a tier for this request"));
    }
    Ok(Some(ChainRequest {
        name: name.clone(),
        config: chain.clone(),
        mark: hints.mark.unwrap_or(chain.mark),
    }))
}

fn unknown_chain_error<'a>(named: &str, chains: impl Iterator<Item = &'a TierId>) -> Error {
    let shown: String = named.chars().take(100).collect();
    let names: Vec<_> = chains.map(TierId::as_str).collect();
    let hint = match names.join(", ") {
        all if all.is_empty() => "the configuration has no chains".to_owned(),
        all => suggest(&shown, names, format!("use one of: {all}")),
    };
    let message = format!("there is no chain \"{shown}\"");
    Error::new(Code::ModelUnknown, message).hint(hint)
}

/// Why no step answered is the error of what begins here.
pub fn begin(
    inference: Arc<Inference>,
    asked: ChainRequest,
    request: Request,
) -> (Beginning, Steps) {
    let name = asked.name.clone();
    let may_wait = asked.config.may_wait();
    let metrics = inference.metrics.clone();
    let trace = request.trace.clone();
    trace.of_chain(&name);
    let walk = Walk::new(inference, asked, request);
    let tried = walk.tried.clone();
    let beginning = Beginning {
        sent: Box::pin(async move {
            let sent = walk.walk().await;
            trace.check(&sent);
            sent
        }),
        // Which tier will answer, and whether it loads, is not known before it does.
        loaded: Arc::new(AtomicBool::new(true)),
        metrics,
        of: name.clone(),
    };
    let steps = Steps {
        name,
        ends_in_queue: may_wait,
        tried,
    };
    (beginning, steps)
}

/// How far a chain has come with a request.
#[derive(Debug)]
pub struct Steps {
    name: TierId,
    ends_in_queue: bool,
    tried: TriedSteps,
}

impl Steps {
    /// Whether the chain ends in the queue and a step may answer later.
    pub fn may_wait(&self) -> bool {
        self.ends_in_queue && self.tried.may_pass()
    }

    pub fn source(&self) -> Source {
        let log = self.tried.log();
        let steps = log.steps.iter();
        Source {
            chain: Some(self.name.clone()),
            tried: steps.map(|step| (step.tier.clone(), step.code)).collect(),
            fallback_from: log.fallback.clone(),
            triage: log.triage.clone(),
            ..Source::default()
        }
    }
}

impl Inference {
    /// The settings of a tier that is an endpoint.
    pub(crate) fn endpoint_of(&self, tier: &TierId) -> Option<EndpointEngine> {
        match &self.services.config().tiers.get(tier)?.engine {
            Engine::Endpoint(engine) => Some(engine.clone()),
            _ => None,
        }
    }

    /// The chains, and which of their endpoints may be asked now.
    pub fn chain_status(&self) -> Vec<ChainStatus> {
        let config = self.services.config();
        let endpoint = |step: &Step| {
            let tier = step.tier()?;
            let engine = self.endpoint_of(tier)?;
            let server = credential(&engine.endpoint);
            Some(StepStatus::Endpoint {
                step: tier.clone(),
                server: server.to_owned(),
                gate: self.endpoints.gate(tier, server),
            })
        };
        let status =
            |step: &Step| endpoint(step).unwrap_or_else(|| StepStatus::Here { step: step.clone() });
        let chains = config.chains.iter().map(|(name, chain)| ChainStatus {
            name: name.clone(),
            steps: chain.steps.iter().map(status).collect(),
            triage: chain.triage,
        });
        chains.collect()
    }
}

/// What endpoints of one server share: its key.
pub fn credential(url: &str) -> &str {
    server_of(url).map_or("", |(_, server)| server)
}

//! Which endpoints may be tried now, by what came of the last requests to them.

use crate::moment::{Clock, Moment};
use parking_lot::Mutex;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tierbar_core::{
    TierId,
    chain::{Endpoints, Gate, Outcome},
};

/// How long a server counts as one without a path that it did not know.
const LACKING: Duration = Duration::from_secs(3600);

/// The state of the endpoints since the host started.
#[derive(Debug, Clone)]
pub struct EndpointStates {
    clock: Arc<Mutex<Clock>>,
    endpoints: Arc<Mutex<Endpoints>>,
    /// The paths that servers did not know, by address and path, and when that was seen.
    lacks: Arc<Mutex<BTreeMap<(String, &'static str), Moment>>>,
}

impl Default for EndpointStates {
    fn default() -> Self {
        Self {
            clock: Arc::new(Mutex::new(Clock::starting(Moment::now()))),
            endpoints: Arc::default(),
            lacks: Arc::default(),
        }
    }
}

impl EndpointStates {
    pub(super) fn now(&self) -> u64 {
        self.at(Moment::now())
    }

    fn at(&self, moment: Moment) -> u64 {
        u64::try_from(self.clock.lock().read(moment).as_millis()).unwrap_or(u64::MAX)
    }

    /// Whether the endpoint may be tried now. The outcome is noted through what this returns.
    pub(super) fn enter(&self, tier: &TierId, credential: &str) -> Result<Trial, Gate> {
        let gate = self.endpoints.lock().enter(tier, credential, self.now());
        match gate {
            Gate::Open => Ok(Trial {
                states: self.clone(),
                tier: tier.clone(),
                credential: credential.to_owned(),
                outcome: Some(Outcome::NotAsked),
            }),
            closed => Err(closed),
        }
    }

    /// Whether the endpoint may be tried, without trying it.
    pub(super) fn gate(&self, tier: &TierId, credential: &str) -> Gate {
        self.endpoints.lock().gate(tier, credential, self.now())
    }

    /// Whether the server at this address did not know the path lately. It may be replaced by one that does.
    pub(super) fn lacks(&self, url: &str, path: &'static str) -> bool {
        let lacks = self.lacks.lock();
        let seen = lacks.get(&(url.to_owned(), path));
        seen.is_some_and(|seen| seen.elapsed() < LACKING)
    }

    /// The server at this address does not know the path.
    pub(super) fn note_lack(&self, url: &str, path: &'static str) {
        let mut lacks = self.lacks.lock();
        lacks.retain(|_, seen| seen.elapsed() < LACKING);
        lacks.insert((url.to_owned(), path), Moment::now());
    }

    /// The key of this server was given anew.
    pub fn forget(&self, server: &str) {
        self.endpoints.lock().forget(server);
    }
}

/// A request to an endpoint. Its outcome is known at its end, because an answer may break off after its first token.
#[derive(Debug)]
pub struct Trial {
    states: EndpointStates,
    tier: TierId,
    credential: String,
    /// What is noted at its end: that it was not asked after all, or, once it has begun, nothing more.
    outcome: Option<Outcome>,
}

impl Trial {
    fn note(&self, outcome: Outcome) {
        let now = self.states.now();
        let mut endpoints = self.states.endpoints.lock();
        endpoints.note(&self.tier, &self.credential, outcome, now);
    }

    /// The first token has arrived. The client may disconnect at any moment, which does not count against the endpoint.
    pub fn begun(&mut self) {
        self.note(Outcome::Begun);
        self.outcome = None;
    }

    /// What it has come to.
    pub fn settle(&mut self, outcome: Outcome) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_ends_while_the_machine_sleeps() {
        let (states, tier) = (EndpointStates::default(), TierId::new("heavy").unwrap());
        let hours = |hours: u64| Duration::from_secs(hours * 3600);
        let limited = Outcome::Limited {
            for_ms: Some(5 * 3_600_000),
        };
        let now = Moment::now();
        let gate = |slept| {
            let moment = Moment {
                wall: now.wall + slept,
                ..now
            };
            states.endpoints.lock().gate(&tier, "", states.at(moment))
        };
        states
            .endpoints
            .lock()
            .note(&tier, "", limited, states.at(now));
        assert!(matches!(gate(hours(4)), Gate::Cooling { .. }));
        assert_eq!(gate(hours(8)), Gate::Open);
    }
}

//! Endpoints that fail: which of them may get a request now, and what follows from each answer. Pure: the time is passed
//! in, in milliseconds of any clock that does not go back.
//!
//! A circuit breaker of the usual three states (M. Nygard, "Release It!", 2nd ed., ch. 5): closed; open after failures in a
//! row; half open, in which one request is let through to try.

use crate::{TierId, config::Step};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Consecutive failures after which an endpoint is skipped.
const FAILURES: u32 = 3;
/// How long it is skipped; doubled after each trial that fails.
const FIRST_PAUSE_MS: u64 = 30_000;
const LONGEST_PAUSE_MS: u64 = 600_000;
/// How long a rate limit without a time lasts.
const DEFAULT_COOLDOWN_MS: u64 = 30_000;
/// Longer limits are cut to this: a day's quota may have been raised meanwhile.
const LONGEST_COOLDOWN_MS: u64 = 6 * 3_600_000;
/// How long a refused credential is not tried: it may have been corrected elsewhere.
const REFUSED_MS: u64 = 15 * 60_000;
/// A trial without an outcome for this long was abandoned by its caller.
const TRY_MS: u64 = 600_000;

/// The outcome of a request to an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It has begun to answer.
    Begun,
    /// It answered to the end.
    Answered,
    /// It works, but does not accept this request.
    Unfit,
    /// It broke off, was silent, or failed.
    Failed,
    /// It limits requests, for this long if it gave a time.
    Limited { for_ms: Option<u64> },
    /// It refused the credential.
    Refused,
    /// No request was sent after all.
    NotAsked,
}

impl Outcome {
    /// Returns the seconds that the endpoint asked to wait, if it did.
    pub fn asks_for(self) -> Option<u64> {
        match self {
            Self::Limited { for_ms } => for_ms.map(|ms| ms.div_ceil(1000)),
            _ => None,
        }
    }
}

/// Whether an endpoint can be used now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase", tag = "gate")]
pub enum Gate {
    Open,
    /// Its server limits requests.
    Cooling {
        for_ms: u64,
    },
    /// It has failed too often; after the pause, one request tries it.
    Broken {
        for_ms: u64,
    },
    /// One request is trying it.
    Trying,
    /// Its server has refused the credential.
    Refused {
        for_ms: u64,
    },
}

impl Gate {
    pub const WORDS: [&str; 5] = ["open", "cooling", "broken", "trying", "refused"];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Cooling { .. } => "cooling",
            Self::Broken { .. } => "broken",
            Self::Trying => "trying",
            Self::Refused { .. } => "refused",
        }
    }

    /// Returns the seconds until it may open, if known.
    pub fn closed_for(self) -> Option<u64> {
        match self {
            Self::Open | Self::Trying => None,
            Self::Cooling { for_ms } | Self::Broken { for_ms } | Self::Refused { for_ms } => {
                Some(for_ms.div_ceil(1000))
            }
        }
    }
}

/// A chain as the API returns it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ChainStatus {
    pub name: TierId,
    /// The steps in the order in which they are tried.
    pub steps: Vec<StepStatus>,
    /// Whether greetings and messages that need no reply go to this machine's tiers first.
    pub triage: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(untagged)]
pub enum StepStatus {
    Endpoint {
        step: TierId,
        /// The server that its key is stored for, such as `api.example.com`.
        server: String,
        #[serde(flatten)]
        gate: Gate,
    },
    /// A tier of this machine, whose state is in its status, or `queue`.
    Here { step: Step },
}

#[derive(Debug, Clone, Copy, Default)]
struct Health {
    failures: u32,
    /// Consecutive times that the circuit opened.
    breaks: u32,
    broken_until: Option<u64>,
    cooling_until: u64,
    trying_until: u64,
}

/// All endpoints that got a request, by their tier, and the credentials that were refused.
#[derive(Debug, Default)]
pub struct Endpoints {
    health: BTreeMap<TierId, Health>,
    refused_until: BTreeMap<String, u64>,
}

impl Endpoints {
    /// Returns whether the endpoint may get a request now. Endpoints share a `credential`: once refused, it is refused for
    /// all.
    pub fn gate(&self, tier: &TierId, credential: &str, now: u64) -> Gate {
        let left = |until: u64| until.checked_sub(now).filter(|left| *left > 0);
        let refused = self.refused_until.get(credential);
        if let Some(for_ms) = refused.and_then(|&until| left(until)) {
            return Gate::Refused { for_ms };
        }
        let health = self.health.get(tier).copied().unwrap_or_default();
        if let Some(for_ms) = left(health.cooling_until) {
            return Gate::Cooling { for_ms };
        }
        match health.broken_until {
            None => Gate::Open,
            Some(until) => match left(until) {
                Some(for_ms) => Gate::Broken { for_ms },
                None if left(health.trying_until).is_some() => Gate::Trying,
                None => Gate::Open,
            },
        }
    }

    /// Like [`Self::gate`]; a caller that finds it open must report the outcome with `note`.
    pub fn enter(&mut self, tier: &TierId, credential: &str, now: u64) -> Gate {
        let gate = self.gate(tier, credential, now);
        if gate == Gate::Open {
            let health = self.health.entry(tier.clone()).or_default();
            if health.broken_until.is_some() {
                health.trying_until = now.saturating_add(TRY_MS);
            }
        }
        gate
    }

    pub fn note(&mut self, tier: &TierId, credential: &str, outcome: Outcome, now: u64) {
        let health = self.health.entry(tier.clone()).or_default();
        let is_broken = health.broken_until.is_some_and(|until| now < until);
        let of_its_health = matches!(
            outcome,
            Outcome::Begun | Outcome::Answered | Outcome::Unfit | Outcome::Failed
        );
        // Failures of requests already sent when the circuit opened are no news.
        if of_its_health && is_broken {
            return;
        }
        health.trying_until = 0;
        // Limits and refused keys stay in place even if an earlier request succeeds.
        match outcome {
            Outcome::Begun => health.broken_until = None,
            Outcome::Answered | Outcome::Unfit => {
                health.broken_until = None;
                (health.failures, health.breaks) = (0, 0);
            }
            Outcome::Failed => {
                health.failures += 1;
                // After a trial, one failure opens the circuit again.
                if health.failures >= FAILURES || health.breaks > 0 {
                    let pause = FIRST_PAUSE_MS << health.breaks.min(10);
                    health.broken_until = Some(now.saturating_add(pause.min(LONGEST_PAUSE_MS)));
                    health.breaks += 1;
                    health.failures = 0;
                }
            }
            Outcome::Limited { for_ms } => {
                let cooldown = for_ms.unwrap_or(DEFAULT_COOLDOWN_MS);
                let cooldown = cooldown.min(LONGEST_COOLDOWN_MS);
                health.cooling_until = health.cooling_until.max(now.saturating_add(cooldown));
            }
            Outcome::NotAsked => {}
            Outcome::Refused => {
                let until = now.saturating_add(REFUSED_MS);
                self.refused_until.insert(credential.to_owned(), until);
            }
        }
    }

    /// Forgets a credential that the user has replaced.
    pub fn forget(&mut self, credential: &str) {
        self.refused_until.remove(credential);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "api.example.com";

    fn tier(name: &str) -> TierId {
        TierId::new(name).unwrap()
    }

    fn failing(endpoints: &mut Endpoints, tier: &TierId, now: u64) {
        assert_eq!(endpoints.enter(tier, KEY, now), Gate::Open, "at {now}");
        endpoints.note(tier, KEY, Outcome::Failed, now);
    }

    #[test]
    fn a_failing_endpoint_backs_off_and_is_tried_by_one() {
        let (mut endpoints, a) = (Endpoints::default(), tier("a"));
        for now in 0..3 {
            failing(&mut endpoints, &a, now);
        }
        let (mut now, mut pause) = (2, FIRST_PAUSE_MS);
        for _ in 0..8 {
            let broken = Gate::Broken { for_ms: 1 };
            assert_eq!(endpoints.gate(&a, KEY, now + pause - 1), broken);
            now += pause;
            assert_eq!(endpoints.enter(&a, KEY, now), Gate::Open);
            assert_eq!(endpoints.enter(&a, KEY, now), Gate::Trying);
            assert_eq!(endpoints.enter(&tier("b"), KEY, now), Gate::Open);
            endpoints.note(&a, KEY, Outcome::Failed, now);
            pause = (pause * 2).min(LONGEST_PAUSE_MS);
        }
        now += pause;
        assert_eq!(endpoints.enter(&a, KEY, now), Gate::Open);
        endpoints.note(&a, KEY, Outcome::Answered, now);
        for later in 0..2 {
            failing(&mut endpoints, &a, now + later);
        }
        assert_eq!(endpoints.gate(&a, KEY, now), Gate::Open);
    }

    #[test]
    fn concurrent_failures_open_the_circuit_once() {
        let (mut endpoints, a) = (Endpoints::default(), tier("a"));
        for _ in 0..10 {
            assert_eq!(endpoints.enter(&a, KEY, 0), Gate::Open);
        }
        for now in 0..10 {
            endpoints.note(&a, KEY, Outcome::Failed, now);
        }
        let for_ms = FIRST_PAUSE_MS - 7;
        assert_eq!(endpoints.gate(&a, KEY, 9), Gate::Broken { for_ms });
    }

    #[test]
    fn a_broken_stream_opens_the_circuit_again() {
        let (mut endpoints, a) = (Endpoints::default(), tier("a"));
        for now in 0..3 {
            failing(&mut endpoints, &a, now);
        }
        let now = 2 + FIRST_PAUSE_MS;
        assert_eq!(endpoints.enter(&a, KEY, now), Gate::Open);
        endpoints.note(&a, KEY, Outcome::Begun, now);
        for _ in 0..2 {
            assert_eq!(endpoints.enter(&a, KEY, now), Gate::Open);
        }
        endpoints.note(&a, KEY, Outcome::Failed, now);
        let for_ms = 2 * FIRST_PAUSE_MS;
        assert_eq!(endpoints.gate(&a, KEY, now), Gate::Broken { for_ms });
        // An earlier request that succeeds does not close it.
        endpoints.note(&a, KEY, Outcome::Answered, now + 1);
        let for_ms = for_ms - 1;
        assert_eq!(endpoints.gate(&a, KEY, now + 1), Gate::Broken { for_ms });
    }

    #[test]
    fn a_success_lifts_neither_a_limit_nor_a_refusal() {
        let (mut endpoints, a, b) = (Endpoints::default(), tier("a"), tier("b"));
        let for_ms = 60_000;
        let limited = Outcome::Limited {
            for_ms: Some(for_ms),
        };
        for ends in [Outcome::Begun, Outcome::Answered, Outcome::Unfit] {
            endpoints.note(&a, KEY, limited, 0);
            endpoints.note(&a, KEY, ends, 0);
            assert_eq!(endpoints.gate(&a, KEY, 0), Gate::Cooling { for_ms });
        }
        endpoints.note(&b, KEY, Outcome::Refused, 0);
        endpoints.note(&b, KEY, Outcome::Answered, 0);
        let for_ms = REFUSED_MS;
        assert_eq!(endpoints.gate(&b, KEY, 0), Gate::Refused { for_ms });
    }

    #[test]
    fn an_unfinished_trial_is_followed_by_another() {
        let (mut endpoints, a) = (Endpoints::default(), tier("a"));
        for now in 0..3 {
            failing(&mut endpoints, &a, now);
        }
        let now = 2 + FIRST_PAUSE_MS;
        assert_eq!(endpoints.enter(&a, KEY, now), Gate::Open);
        endpoints.note(&a, KEY, Outcome::NotAsked, now);
        assert_eq!(endpoints.enter(&a, KEY, now), Gate::Open);
        assert_eq!(endpoints.enter(&a, KEY, now + TRY_MS - 1), Gate::Trying);
        assert_eq!(endpoints.enter(&a, KEY, now + TRY_MS), Gate::Open);
    }

    #[test]
    fn a_rate_limit_lasts_as_long_as_it_states() {
        let (mut endpoints, a) = (Endpoints::default(), tier("a"));
        let limited = |for_ms| Outcome::Limited { for_ms };
        endpoints.note(&a, KEY, limited(Some(5000)), 100);
        assert_eq!(endpoints.gate(&a, KEY, 5099), Gate::Cooling { for_ms: 1 });
        assert_eq!(endpoints.gate(&a, KEY, 5100), Gate::Open);
        endpoints.note(&a, KEY, limited(None), 6000);
        assert_eq!(
            endpoints.gate(&a, KEY, 6000),
            Gate::Cooling {
                for_ms: DEFAULT_COOLDOWN_MS
            }
        );
        endpoints.note(&a, KEY, limited(Some(u64::MAX)), 6000);
        assert_eq!(
            endpoints.gate(&a, KEY, 6000),
            Gate::Cooling {
                for_ms: 6 * 60 * 60 * 1000
            },
            "six hours at most"
        );
        assert_eq!(endpoints.gate(&tier("b"), KEY, 6000), Gate::Open);
    }

    #[test]
    fn a_limit_is_asked_for_in_whole_seconds_rounded_up() {
        let asks_for = |for_ms| Outcome::Limited { for_ms }.asks_for();
        assert_eq!(asks_for(Some(5000)), Some(5));
        assert_eq!(asks_for(Some(5001)), Some(6));
        assert_eq!(asks_for(None), None);
        for outcome in [Outcome::Answered, Outcome::Failed, Outcome::Refused] {
            assert_eq!(outcome.asks_for(), None, "{outcome:?}");
        }
    }

    #[test]
    fn a_gate_is_named_as_on_the_wire_and_closed_for_whole_seconds() {
        let for_ms = 2001;
        let gates = [
            (Gate::Open, None),
            (Gate::Cooling { for_ms }, Some(3)),
            (Gate::Broken { for_ms }, Some(3)),
            (Gate::Trying, None),
            (Gate::Refused { for_ms }, Some(3)),
        ];
        assert_eq!(gates.map(|(gate, _)| gate.as_str()), Gate::WORDS);
        for (gate, seconds) in gates {
            let wire = serde_json::to_value(gate).unwrap();
            assert_eq!(wire["gate"], gate.as_str());
            assert_eq!(gate.closed_for(), seconds, "{gate:?}");
        }
    }

    #[test]
    fn a_refused_credential_blocks_all_that_share_it() {
        let (mut endpoints, a, b) = (Endpoints::default(), tier("a"), tier("b"));
        endpoints.note(&a, KEY, Outcome::Refused, 100);
        let a_quarter_of_an_hour = Gate::Refused { for_ms: 900_000 };
        assert_eq!(endpoints.gate(&b, KEY, 100), a_quarter_of_an_hour);
        assert_eq!(endpoints.gate(&b, "other.example.com", 100), Gate::Open);
        assert_eq!(endpoints.gate(&b, KEY, 100 + REFUSED_MS), Gate::Open);
        endpoints.forget(KEY);
        assert_eq!(endpoints.gate(&a, KEY, 100), Gate::Open);
    }

    #[test]
    fn a_request_that_does_not_fit_is_no_failure() {
        let (mut endpoints, a) = (Endpoints::default(), tier("a"));
        for now in 0..2 {
            failing(&mut endpoints, &a, now);
        }
        endpoints.note(&a, KEY, Outcome::Unfit, 2);
        failing(&mut endpoints, &a, 3);
        assert_eq!(endpoints.gate(&a, KEY, 4), Gate::Open);
    }
}

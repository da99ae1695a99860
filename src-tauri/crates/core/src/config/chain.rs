//! Chains: who is asked for an answer, one after another.

use super::{Dollars, Span};
use crate::TierId;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A chain is asked for by its name, as a model is. Whoever answers first ends it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ChainConfig {
    /// Tiers, of any engine, in the order in which they are asked. The last may be `"queue"`: what nobody answers now waits there.
    pub steps: Vec<Step>,
    /// How often an endpoint that fails is asked again before the next step is.
    pub retries: u8,
    /// So long an endpoint may take to its first word.
    pub wait: Span,
    /// So long the chain may take to the first word of all.
    pub time: Span,
    /// What one request may cost at most, by its endpoints' prices; those without one are passed over then. 0: anything.
    pub cost: Dollars,
    /// The next step is asked as well when the one before has been silent for so long, and who speaks first answers; `"0s"`: never.
    pub hedge: Span,
    /// An answer from this machine in place of the first step's begins with `[Local Fallback]`.
    pub mark: bool,
}

impl ChainConfig {
    pub const MOST_STEPS: usize = 16;
    pub const MOST_RETRIES: u8 = 5;
    pub const LONGEST: Span = Span::seconds(3600);

    /// The tiers, without the queue.
    pub fn tiers(&self) -> impl Iterator<Item = &TierId> {
        self.steps.iter().filter_map(Step::tier)
    }

    #[must_use]
    pub fn may_wait(&self) -> bool {
        self.steps.last() == Some(&Step::Queue)
    }
}

impl Default for ChainConfig {
    fn default() -> Self {
        Self {
            steps: Vec::new(),
            retries: 1,
            wait: Span::seconds(30),
            time: Span::seconds(300),
            cost: Dollars::default(),
            hedge: Span::seconds(0),
            mark: false,
        }
    }
}

/// A tier's name, or `"queue"`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(test, derive(ts_rs::TS), ts(type = "string"))]
pub enum Step {
    Tier(TierId),
    Queue,
}

impl Step {
    const QUEUE: &'static str = "queue";

    #[must_use]
    pub fn tier(&self) -> Option<&TierId> {
        match self {
            Self::Tier(tier) => Some(tier),
            Self::Queue => None,
        }
    }
}

impl TryFrom<String> for Step {
    type Error = String;
    fn try_from(name: String) -> Result<Self, String> {
        if name == Self::QUEUE {
            return Ok(Self::Queue);
        }
        TierId::new(name).map(Self::Tier)
    }
}

impl From<Step> for String {
    fn from(step: Step) -> Self {
        step.to_string()
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tier(tier) => tier.fmt(f),
            Self::Queue => f.write_str(Self::QUEUE),
        }
    }
}

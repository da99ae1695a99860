//! Chains: tiers to try in order.

use super::{ChainBudget, Dollars, Span, with_defaults};
use crate::TierId;
use serde::{Deserialize, Serialize};
use std::fmt;

with_defaults! {
    /// A chain is requested by its name, like a model. The first step that answers ends it.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
    pub struct ChainConfig {
        /// Tiers of any engine, in the order in which they are tried. The last step may be `"queue"`, which keeps the request
        /// for later.
        pub steps: Vec<Step>,
        /// How often a failing endpoint is retried before the next step.
        pub retries: u8 = 1,
        /// Timeout until an endpoint's first token.
        pub wait: Span = Span::seconds(30),
        /// Timeout until the chain's first token.
        pub time: Span = Span::seconds(300),
        /// The most that one request may cost, by the endpoints' prices; endpoints without a price are then skipped. 0 sets no
        /// limit.
        pub cost: Dollars,
        /// The most that the chain may cost in a day, a week or a month, such as `"5 USD a month"`, by the endpoints' prices. Endpoints
        /// without a price are then skipped, and all of them once it is spent.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub budget: Option<ChainBudget>,
        /// After this long without a token, also start the next step; the first to produce a token answers. `"0s"` turns this off.
        pub hedge: Span = Span::seconds(0),
        /// Prefix `[Local Fallback]` to a local answer that replaces the first step's.
        pub mark: bool,
        /// Triage the user's last message on this machine. For a greeting or a message that needs no reply, try this machine's tiers
        /// first.
        pub triage: bool,
    }
}

impl ChainConfig {
    pub const MOST_STEPS: usize = 16;
    pub const MOST_RETRIES: u8 = 5;
    pub const LONGEST: Span = Span::seconds(3600);

    /// Returns the tiers, without the queue.
    pub fn tiers(&self) -> impl Iterator<Item = &TierId> {
        self.steps.iter().filter_map(Step::tier)
    }

    pub fn may_wait(&self) -> bool {
        self.steps.last() == Some(&Step::Queue)
    }
}

/// A tier's name, or `"queue"`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Step {
    Tier(TierId),
    Queue,
}

impl Step {
    const QUEUE: &'static str = "queue";

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

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tier(tier) => tier.fmt(f),
            Self::Queue => f.write_str(Self::QUEUE),
        }
    }
}

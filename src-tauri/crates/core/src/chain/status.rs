//! A chain as the API returns it.

use super::Gate;
use crate::{TierId, config::Step};
use serde::{Deserialize, Serialize};

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

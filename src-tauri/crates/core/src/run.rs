//! How the engine runs a model: its batch, its slots, and the cells of its KV cache.
//!
//! The lowest module of five: model, config, budget and fit stand on it in this order.

use crate::words::from_word;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Tokens that the engine evaluates in one graph unless a tier has another `batch`; llama.cpp's `n_ubatch` default.
pub const MICRO_BATCH: u32 = 512;

/// Requests that a worker answers at the same time, sharing one context.
pub const SLOTS: u16 = 2;

crate::words! {
    /// The KV cache's cell type. Block sizes: ggml's `block_q8_0` (34 bytes per 32) and `block_q4_0` (18 per 32).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, ToSchema)]
    pub enum KvCache {
        // From the most precise.
        #[default]
        F16 = "f16",
        Q8_0 = "q8_0",
        Q4_0 = "q4_0",
    }
}

crate::words! {
    /// What a tier is used for: how long its context is, and in how many bits its KV cache is kept, where the tier does not say.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, ToSchema)]
    pub enum Profile {
        /// The longest context for an eighth of the budget, and 16,384 tokens where they fit.
        #[default]
        Balanced = "balanced",
        /// The longest context that fits.
        LongContext = "long_context",
        /// Up to 32,768 tokens, for programs that send their tools and files with each request.
        Agent = "agent",
        /// 16,384 tokens, which leaves the most memory for a mixture's experts.
        Paged = "paged",
    }
}

/// What is done with a model that exceeds the memory budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Paging {
    /// The best that this machine has.
    #[default]
    Auto,
    /// It is refused.
    Off,
    /// The system reads it through the file's mapping.
    Mmap,
    /// Like `Mmap`, and the system is told which experts of a mixture are read next.
    Advise,
    /// Like `Advise`, and the GPU computes prompts with the experts too, of one layer at a time in memory of its own.
    #[serde(rename = "advise-gpu")]
    AdviseGpu,
    /// A mixture's experts are read into a cache of fixed size when they are chosen. Other models are read as with `Mmap`.
    Cache,
    /// Like `Cache`, and the layers of a dense model are read from the disk for every token: slow, with little memory.
    Stream,
}

crate::words! {
    /// Whether a mixture's answers may differ from the model's own, so that a token reads less.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, ToSchema)]
    pub enum Approximation {
        /// They are the model's own, to the bit.
        #[default]
        Off = "off",
        /// Experts that are in memory take the place of chosen ones that are not, if they are next in the router's order. The first half
        /// of a choice stays.
        Substitute = "substitute",
        /// Chosen experts that are not in memory are left out if they weigh less than a tenth.
        Drop = "drop",
    }
}

impl KvCache {
    pub fn bytes(self, elements: u64) -> u64 {
        match self {
            Self::F16 => elements.saturating_mul(2),
            Self::Q8_0 => elements.div_ceil(32).saturating_mul(34),
            Self::Q4_0 => elements.div_ceil(32).saturating_mul(18),
        }
    }
}

from_word! {
    KvCache: "is not a KV cache type: use f16, q8_0 or q4_0";
    Profile: "is not a profile: use balanced, long_context, agent or paged";
    Approximation: "is no approximation: use off, substitute or drop";
}

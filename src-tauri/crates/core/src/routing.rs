//! Which tier a request for `auto` is for: the smallest that can do it, and why, in plain words.
//!
//! [`Traits`] is what a request asks, [`judge`] how hard that is by rules, [`classifier`] what a small model makes of a request that
//! no rule knows, and [`choose`] takes a tier for it by what is loaded. All of it is pure: the same request and the same tiers give
//! the same choice.

mod choose;
pub mod classifier;
mod rules;
mod signs;
mod traits;
mod words;

pub use choose::{Choice, Need, Seat, choose, leave_eligible};
pub use rules::{Judgement, judge};
pub use traits::Traits;

use crate::TierId;
use serde::{Deserialize, Serialize};

/// How hard a request is, which is also how large a tier is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// `fast` does it.
    Simple,
    /// `primary` does it.
    Medium,
    /// It takes `heavy`.
    Hard,
}

impl Level {
    pub const ALL: [Self; 3] = [Self::Simple, Self::Medium, Self::Hard];

    /// The word that a classifier says for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Simple => "simple",
            Self::Medium => "medium",
            Self::Hard => "hard",
        }
    }

    /// The tier that is made for it.
    #[must_use]
    pub fn tier(self) -> &'static str {
        match self {
            Self::Simple => "fast",
            Self::Medium => "primary",
            Self::Hard => "heavy",
        }
    }

    /// What a tier of this name is made for; `None`: something of its own, for which it is asked by name.
    #[must_use]
    pub fn of(tier: &TierId) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|level| level.tier() == tier.as_str())
    }

    fn place(self) -> usize {
        match self {
            Self::Simple => 0,
            Self::Medium => 1,
            Self::Hard => 2,
        }
    }
}

#[cfg(test)]
mod tests;

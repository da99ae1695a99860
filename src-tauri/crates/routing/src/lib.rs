//! The tier for a request for `auto`: the smallest that can answer it, and why, in plain words.
//!
//! [`Traits`] are the properties of a request, [`judge`] grades it by rules, [`classifier`] lets a small model grade a
//! request that no rule matches, and [`choose`] picks a tier by what is loaded. All of it is pure: the same request and the
//! same tiers give the same choice.

mod choose;
pub mod classifier;
pub mod grade;
mod guess;
pub mod learned;
mod rules;
mod signs;
mod traits;
#[rustfmt::skip]
mod words;

pub use choose::{Candidate, Choice, Need, choose, leave_eligible};
pub use rules::{Judgement, is_greeting, judge, judge_text};
pub use traits::Traits;

use serde::{Deserialize, Serialize};
use tierbar_core::TierId;
use utoipa::ToSchema;

/// How hard a request is, which is also how large a tier is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// A request for `fast`.
    Simple,
    /// A request for `primary`.
    Medium,
    /// A request for `heavy`.
    Hard,
}

impl Level {
    pub const ALL: [Self; 3] = [Self::Simple, Self::Medium, Self::Hard];

    /// Returns the classifier's word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Simple => "simple",
            Self::Medium => "medium",
            Self::Hard => "hard",
        }
    }

    /// Returns the tier made for it.
    pub fn tier(self) -> &'static str {
        match self {
            Self::Simple => "fast",
            Self::Medium => "primary",
            Self::Hard => "heavy",
        }
    }

    /// Returns the level that a tier of this name is made for; `None` for a tier with a name of its own, which is only
    /// requested by name.
    pub fn of(tier: &TierId) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|level| level.tier() == tier.as_str())
    }

    /// Returns its place in [`Self::ALL`].
    fn place(self) -> usize {
        self as usize
    }
}

#[cfg(test)]
mod tests;

//! Grades of answers: good or bad, with a reason, and what they show of models.

use crate::{
    Level,
    learned::{ENOUGH, GOOD, LearnedLevel, LearnedLevels, POOR},
};
use serde::{Deserialize, Serialize};

/// The most characters of a reason.
pub const MOST_WHY: usize = 2000;

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum GradeVerdict {
    Good,
    Bad,
}

/// What the owner thinks of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Grade {
    pub verdict: GradeVerdict,
    /// Why, in the owner's words.
    pub why: Option<String>,
}

impl Grade {
    /// Returns the grade without blanks around its reason, and without an empty reason.
    ///
    /// # Errors
    /// Says that the reason is too long.
    pub fn checked(self) -> Result<Self, String> {
        let why = self.why.as_deref().map(str::trim);
        let why = why.filter(|why| !why.is_empty()).map(str::to_owned);
        let length = why.as_ref().map_or(0, |why| why.chars().count());
        if length > MOST_WHY {
            return Err(format!(
                "the reason has {length} characters and can have {MOST_WHY}"
            ));
        }
        Ok(Self { why, ..self })
    }
}

/// How many answers were graded, by verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct GradeCounts {
    pub good: u64,
    pub bad: u64,
}

impl GradeCounts {
    /// Returns the number of grades.
    pub fn total(self) -> u64 {
        self.good.saturating_add(self.bad)
    }

    #[must_use]
    pub fn plus(self, more: Self) -> Self {
        Self {
            good: self.good.saturating_add(more.good),
            bad: self.bad.saturating_add(more.bad),
        }
    }

    /// Returns the share of good ones, and the interval in which the true share lies at a confidence of 95 %, each from 0 to 1;
    /// `None` without grades.
    ///
    /// The interval is Wilson's (E. B. Wilson, "Probable inference, the law of succession, and statistical inference", 1927), which
    /// holds for few grades too.
    pub fn share(self) -> Option<Share> {
        const Z: f64 = 1.959_964;
        if self.total() == 0 {
            return None;
        }
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let (good, all) = (self.good as f64, self.total() as f64);
        let good = good / all;
        let squared = Z * Z / all;
        let middle = (good + squared / 2.0) / (1.0 + squared);
        let half = Z * (good * (1.0 - good) / all + squared / (4.0 * all)).sqrt() / (1.0 + squared);
        Some(Share {
            good,
            low: (middle - half).max(0.0),
            high: (middle + half).min(1.0),
        })
    }
}

/// A share of good answers, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Share {
    pub good: f64,
    /// The lower end of the interval in which the true share lies, at a confidence of 95 %.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// The grades of one model's answers as one tier, to requests of one level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct GradeGroup {
    pub model: Option<String>,
    pub tier: Option<String>,
    /// How the model is quantized, where that is known.
    pub quant: Option<String>,
    /// How hard the question is, by the rules of `auto`.
    pub level: Level,
    pub counts: GradeCounts,
    /// Those of them that `auto` learns from: given since the last reset.
    pub learned: GradeCounts,
    /// `null` without grades.
    pub share: Option<Share>,
}

/// The rates of graded answers, and what `auto` has learned from them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct GradeReport {
    /// All grades.
    pub counts: GradeCounts,
    /// `null` without grades.
    pub share: Option<Share>,
    /// By model, tier and level; the most graded first.
    pub groups: Vec<GradeGroup>,
    pub routing: LearnedRouting,
}

/// What `auto` has learned from grades, and the bounds of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LearnedRouting {
    pub levels: Vec<LearnedLevel>,
    /// Grades of one level by one tier, before which nothing changes.
    pub enough: u64,
    /// If the share of good answers is surely below this, the next larger tier answers.
    pub poor: f64,
    /// If the share of good answers of the next smaller tier is surely above this, that tier answers.
    pub good: f64,
}

impl GradeReport {
    pub fn from_groups(groups: Vec<GradeGroup>) -> Self {
        let counts = groups
            .iter()
            .fold(GradeCounts::default(), |sum, group| sum.plus(group.counts));
        let routing = LearnedRouting {
            levels: LearnedLevels::from_groups(&groups).levels().to_vec(),
            enough: ENOUGH,
            poor: POOR,
            good: GOOD,
        };
        Self {
            counts,
            share: counts.share(),
            groups,
            routing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(good: u64, bad: u64) -> GradeCounts {
        GradeCounts { good, bad }
    }

    #[test]
    fn a_share_has_the_interval_of_wilson() {
        assert_eq!(GradeCounts::default().share(), None);
        // Computed by hand from the formula.
        for (counts, good, low, high) in [
            (counts(8, 2), 0.8, 0.490, 0.943),
            (counts(0, 5), 0.0, 0.0, 0.434),
            (counts(1, 0), 1.0, 0.207, 1.0),
            (counts(50, 50), 0.5, 0.404, 0.596),
        ] {
            let share = counts.share().unwrap();
            let near = |one: f64, other: f64| (one - other).abs() < 0.001;
            assert!(near(share.good, good), "{share:?}");
            assert!(near(share.low, low) && near(share.high, high), "{share:?}");
        }
    }

    #[test]
    fn a_reason_is_trimmed_and_bounded() {
        let grade = |why: &str| Grade {
            verdict: GradeVerdict::Bad,
            why: Some(why.to_owned()),
        };
        assert_eq!(grade(" \n").checked().unwrap().why, None);
        assert_eq!(grade(" Wrong. ").checked(), Ok(grade("Wrong.")));
        assert!(grade(&"é".repeat(MOST_WHY)).checked().is_ok());
        assert!(grade(&"é".repeat(MOST_WHY + 1)).checked().is_err());
    }
}

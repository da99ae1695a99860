//! What the owner's grades change in the choice of `auto`: a level is routed as the next one, at most.

use super::Level;
use crate::grade::{GradeCounts, GradeGroup};
use serde::{Deserialize, Serialize};

/// Grades of one level by one tier, before which nothing changes.
pub const ENOUGH: u64 = 20;
/// If the share of good answers is surely below this, the next larger tier answers.
pub const POOR: f64 = 0.6;
/// If the share of good answers of the next smaller tier is surely above this, that tier answers.
pub const GOOD: f64 = 0.8;

/// What grades have shown of the requests of one level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LearnedLevel {
    pub level: Level,
    /// Of answers by the tier that is made for the level.
    pub own_tier: GradeCounts,
    /// Of answers by the next smaller tier.
    pub smaller_tier: GradeCounts,
    /// The level as which `auto` routes such requests.
    pub routed_as: Level,
}

/// What grades have shown of all levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LearnedLevels([LearnedLevel; 3]);

impl Default for LearnedLevels {
    fn default() -> Self {
        Self::from_groups(&[])
    }
}

impl LearnedLevels {
    /// Learns from the grades since the last reset.
    ///
    /// A level moves only if [`ENOUGH`] answers were graded and the whole interval of [`GradeCounts::share`] is beyond [`POOR`] or
    /// [`GOOD`]; by one level at most, and up rather than down.
    pub fn from_groups(groups: &[GradeGroup]) -> Self {
        Self(Level::ALL.map(|level| {
            let own_tier = counts(groups, level, level.tier());
            let larger = Level::ALL.get(level.place() + 1).copied();
            let smaller = level.place().checked_sub(1).map(|place| Level::ALL[place]);
            let smaller_tier = smaller.map_or_else(GradeCounts::default, |smaller| {
                counts(groups, level, smaller.tier())
            });
            let share = |counts: GradeCounts| counts.share().filter(|_| counts.total() >= ENOUGH);
            let is_poor = share(own_tier).is_some_and(|share| share.high < POOR);
            let is_good = share(smaller_tier).is_some_and(|share| share.low > GOOD);
            let up = larger.filter(|_| is_poor);
            let down = smaller.filter(|_| is_good);
            LearnedLevel {
                level,
                own_tier,
                smaller_tier,
                routed_as: up.or(down).unwrap_or(level),
            }
        }))
    }

    /// Returns the level as which requests of a level are routed.
    pub fn route(&self, level: Level) -> Level {
        self.0[level.place()].routed_as
    }

    pub fn levels(&self) -> &[LearnedLevel] {
        &self.0
    }
}

fn counts(groups: &[GradeGroup], level: Level, tier: &str) -> GradeCounts {
    groups
        .iter()
        .filter(|group| group.level == level && group.tier.as_deref() == Some(tier))
        .fold(GradeCounts::default(), |sum, group| sum.plus(group.learned))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(level: Level, tier: &str, good: u64, bad: u64) -> GradeGroup {
        let learned = GradeCounts { good, bad };
        GradeGroup {
            model: Some("any".to_owned()),
            tier: Some(tier.to_owned()),
            quant: None,
            level,
            counts: learned,
            learned,
            share: learned.share(),
        }
    }

    #[test]
    fn nothing_changes_before_there_are_enough_grades() {
        for groups in [
            vec![],
            vec![group(Level::Simple, "fast", 0, ENOUGH - 1)],
            vec![group(Level::Medium, "fast", ENOUGH - 1, 0)],
            // Half of them good may as well be 70 %.
            vec![group(Level::Simple, "fast", 10, 10)],
            // A tier with a name of its own serves no level.
            vec![group(Level::Simple, "own", 0, 500)],
        ] {
            let learned = LearnedLevels::from_groups(&groups);
            for level in Level::ALL {
                assert_eq!(learned.route(level), level, "{groups:?}");
            }
        }
    }

    #[test]
    fn poor_answers_move_a_level_to_the_next_larger_tier() {
        let learned = LearnedLevels::from_groups(&[
            group(Level::Simple, "fast", 1, 14),
            group(Level::Simple, "fast", 1, 6),
            group(Level::Hard, "heavy", 0, 100),
        ]);
        assert_eq!(learned.route(Level::Simple), Level::Medium);
        assert_eq!(learned.route(Level::Medium), Level::Medium);
        assert_eq!(learned.route(Level::Hard), Level::Hard, "none is larger");
    }

    #[test]
    fn good_answers_of_a_smaller_tier_move_a_level_down() {
        let good = group(Level::Medium, "fast", 60, 2);
        let learned = LearnedLevels::from_groups(std::slice::from_ref(&good));
        assert_eq!(learned.route(Level::Medium), Level::Simple);
        // Its own tier is poor too: quality comes first.
        let poor = group(Level::Medium, "primary", 2, 40);
        assert_eq!(
            LearnedLevels::from_groups(&[good, poor]).route(Level::Medium),
            Level::Hard
        );
    }

    #[test]
    fn a_level_moves_by_one_at_most() {
        let learned = LearnedLevels::from_groups(&[group(Level::Hard, "fast", 1000, 0)]);
        assert_eq!(learned.route(Level::Hard), Level::Hard);
        let learned = LearnedLevels::from_groups(&[group(Level::Simple, "fast", 0, 100_000)]);
        assert_eq!(learned.route(Level::Simple), Level::Medium);
    }
}

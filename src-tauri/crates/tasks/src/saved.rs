//! Tokens that were not sent to a cloud, and what was spent here instead.

use super::Task;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, ops::AddAssign};

/// What one or more answers used and saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Spent)]
pub struct TaskSavings {
    /// Answered texts.
    pub answers: u64,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    /// Tokens not sent to a cloud: see `docs/tasks.md` for how they are counted.
    pub saved_tokens: u64,
}

impl AddAssign for TaskSavings {
    fn add_assign(&mut self, other: Self) {
        self.answers = self.answers.saturating_add(other.answers);
        self.prompt_tokens = self.prompt_tokens.saturating_add(other.prompt_tokens);
        self.completion_tokens = self
            .completion_tokens
            .saturating_add(other.completion_tokens);
        self.saved_tokens = self.saved_tokens.saturating_add(other.saved_tokens);
    }
}

/// A day of this machine's calendar.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Day {
    /// `2026-11-22`.
    pub day: String,
    pub tasks: BTreeMap<Task, TaskSavings>,
}

/// The answer of `GET /tierbar/v1/costs`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Costs {
    /// The newest first. A day without answers is left out.
    pub days: Vec<Day>,
    /// The sum of these days.
    pub total: TaskSavings,
}

impl Costs {
    pub fn from_days(days: Vec<Day>) -> Self {
        let mut total = TaskSavings::default();
        for spent in days.iter().flat_map(|day| day.tasks.values()) {
            total += *spent;
        }
        Self { days, total }
    }
}

/// Estimates the tokens of a text from its share of a counted prompt's bytes. Without a count, four bytes are a token, as
/// in English.
pub fn tokens_of(bytes: usize, prompt_bytes: usize, prompt_tokens: u64) -> u64 {
    let (bytes, whole) = (bytes as u64, prompt_bytes as u64);
    if prompt_tokens == 0 || whole == 0 {
        return bytes.div_ceil(4);
    }
    let tokens = u128::from(bytes) * u128::from(prompt_tokens) / u128::from(whole);
    u64::try_from(tokens).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_texts_tokens_are_proportional_to_its_length() {
        assert_eq!(tokens_of(300, 400, 100), 75);
        assert_eq!(tokens_of(400, 0, 0), 100);
        assert_eq!(tokens_of(0, 400, 100), 0);
        assert_eq!(tokens_of(usize::MAX, 1, u64::MAX), u64::MAX);
    }

    #[test]
    fn the_total_is_of_all_days() {
        let spent = TaskSavings {
            answers: 1,
            prompt_tokens: 20,
            completion_tokens: 3,
            saved_tokens: 10,
        };
        let day = |day: &str| Day {
            day: day.to_owned(),
            tasks: BTreeMap::from([(Task::Triage, spent), (Task::Brief, spent)]),
        };
        let costs = Costs::from_days(vec![day("2026-11-22"), day("2026-11-21")]);
        assert_eq!((costs.total.answers, costs.total.saved_tokens), (4, 40));
        assert_eq!(Costs::from_days(Vec::new()).total, TaskSavings::default());
    }
}

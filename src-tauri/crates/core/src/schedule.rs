//! When a schedule is due. Its **turns** are its times in the calendar, in seconds since 1970, computed by the caller.

use crate::config::ScheduleConfig;
use serde::{Deserialize, Serialize};

/// How old a missed run may be to be made up.
pub const MADE_UP_WITHIN: i64 = 24 * 3600;
const BACK_OFF: [i64; 4] = [60, 5 * 60, 15 * 60, 3600];
/// The outcome of an attempt that has no other.
const INTERRUPTED: &str = "Tierbar quit or was ended while it ran";

/// The progress of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Run {
    /// The last turn that was started, or when the schedule was first seen: no earlier turn is started any more.
    pub turn: i64,
    /// How often that turn was started.
    pub attempts: u32,
    /// Whether that turn is over: it succeeded or was given up.
    pub finished: bool,
    /// When the last attempt started.
    pub tried_at: Option<i64>,
    /// A successful run has read what changed in the folder up to this time.
    pub covers_to: Option<i64>,
    /// The outcome of the last attempt, in one sentence.
    pub outcome: Option<String>,
    /// Whether it failed.
    pub failing: bool,
}

/// A schedule as the API returns it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ScheduleStatus {
    pub name: String,
    #[serde(flatten)]
    pub config: ScheduleConfig,
    /// The next run, in seconds since 1970; `null` in a host started for one command, which runs no schedules.
    pub next_at: Option<i64>,
    /// When the last run started.
    pub tried_at: Option<i64>,
    /// That of the last run; `null` while one runs.
    pub outcome: Option<String>,
    /// Whether the last attempt failed; the next one is at `next_at`.
    pub failing: bool,
    /// Whether it is running now.
    pub running: bool,
}

/// What to do about a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextTurn {
    /// Start this turn now.
    Begin(i64),
    /// Nothing before this time.
    Wait(i64),
    /// It has no turn among those given.
    Never,
}

impl Run {
    /// Returns the progress of a new schedule, which starts with its next turn.
    pub fn first_seen(now: i64) -> Self {
        Self {
            turn: now,
            finished: true,
            ..Self::default()
        }
    }

    /// Returns what to do. `turns` are those from two days before `now` to a week after it, in order.
    pub fn next(&self, turns: &[i64], now: i64) -> NextTurn {
        let fresh = |turn: i64| turn <= now && now - turn < MADE_UP_WITHIN;
        let last = self.last(now);
        // Of several missed turns, only the last is made up.
        let mut latest_first = turns.iter().rev();
        if let Some(&turn) = latest_first.find(|turn| **turn > last && fresh(**turn)) {
            return NextTurn::Begin(turn);
        }
        let ahead = turns.iter().copied().find(|&turn| turn > now.max(last));
        // A failed turn comes first, as long as it is recent enough to be made up.
        if !self.finished && fresh(self.turn) {
            let again = self.again_at();
            if again <= now {
                return NextTurn::Begin(self.turn);
            }
            return NextTurn::Wait(ahead.map_or(again, |ahead| ahead.min(again)));
        }
        ahead.map_or(NextTurn::Never, NextTurn::Wait)
    }

    /// Records that the turn starts now; store this before the run. Until another outcome is recorded, the host has ended meanwhile.
    pub fn begun(&self, turn: i64, now: i64) -> Self {
        let attempts = if turn == self.turn { self.attempts } else { 0 };
        Self {
            turn,
            attempts: attempts.saturating_add(1),
            finished: false,
            tried_at: Some(now),
            outcome: Some(INTERRUPTED.to_owned()),
            failing: true,
            ..self.clone()
        }
    }

    /// Records a failed attempt; `finished` is set if it was the last.
    pub fn failed(&self, why: String) -> Self {
        Self {
            finished: self.attempts as usize > BACK_OFF.len(),
            outcome: Some(why),
            failing: true,
            ..self.clone()
        }
    }

    /// Records that the attempt does not count, because only the time was wrong: the outcome is the one from `before` it.
    pub fn put_off(&self, before: &Self) -> Self {
        Self {
            attempts: self.attempts.saturating_sub(1),
            outcome: before.outcome.clone(),
            failing: before.failing,
            ..self.clone()
        }
    }

    /// Records a success that covers changes up to `covers_to`.
    pub fn done(&self, covers_to: i64, outcome: String) -> Self {
        Self {
            finished: true,
            covers_to: Some(covers_to),
            outcome: Some(outcome),
            failing: false,
            ..self.clone()
        }
    }

    /// Records a run on request, which is no turn's attempt: the next turn reads the same changes again.
    pub fn by_hand(&self, now: i64, outcome: String, failing: bool) -> Self {
        Self {
            tried_at: Some(now),
            outcome: Some(outcome),
            failing,
            ..self.clone()
        }
    }

    /// Returns the last turn, or `now` if a wrong clock has put it far ahead, or no turn would ever come.
    fn last(&self, now: i64) -> i64 {
        if self.turn > now.saturating_add(MADE_UP_WITHIN) {
            now
        } else {
            self.turn
        }
    }

    fn again_at(&self) -> i64 {
        let before = (self.attempts.max(1) - 1) as usize;
        let wait = BACK_OFF.get(before).or(BACK_OFF.last()).copied();
        self.tried_at
            .unwrap_or(self.turn)
            .saturating_add(wait.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests;

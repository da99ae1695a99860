//! When a schedule is due. Its **turns** are the moments at which its time of day comes, in seconds since 1970, as whoever knows
//! the calendar has found them.

use crate::config::ScheduleConfig;
use serde::{Deserialize, Serialize};

/// A turn that was missed is made up until it is so old.
pub const MADE_UP_WITHIN: i64 = 24 * 3600;
/// How long after each failed attempt of a turn the next one comes.
const BACK_OFF: [i64; 4] = [60, 5 * 60, 15 * 60, 3600];

/// How far a schedule has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The last turn that was begun, or when the schedule was first seen: no turn up to it is begun any more.
    pub turn: i64,
    /// How often that turn was begun.
    pub attempts: u32,
    /// Nothing is left to do for that turn: it was done, or given up.
    pub finished: bool,
    /// When the last attempt began.
    pub tried_at: Option<i64>,
    /// What changed in a folder up to this moment has been read by a run that succeeded.
    pub covers_to: Option<i64>,
    /// What came of the last attempt, in one sentence.
    pub outcome: Option<String>,
    /// That was a failure.
    pub failing: bool,
}

/// A schedule as it is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScheduleStatus {
    pub name: String,
    #[serde(flatten)]
    pub config: ScheduleConfig,
    /// In seconds since 1970; `null` in a host that runs for a command alone, and takes no turns.
    pub next_at: Option<i64>,
    /// When the last run of a turn began, and what came of it.
    pub tried_at: Option<i64>,
    pub outcome: Option<String>,
    /// It has failed, and is tried again at `next_at` or will not be tried again before its next run.
    pub failing: bool,
    /// At this moment.
    pub running: bool,
}

/// What is to be done about a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// This turn, now.
    Begin(i64),
    /// Nothing before this moment.
    Wait(i64),
    /// It has no turn among those that are known.
    Never,
}

impl Run {
    /// A schedule that is new: it begins with its next turn.
    #[must_use]
    pub fn first_seen(now: i64) -> Self {
        Self {
            turn: now,
            attempts: 0,
            finished: true,
            tried_at: None,
            covers_to: None,
            outcome: None,
            failing: false,
        }
    }

    /// `turns`: those from two days before `now` to a week behind it, in order.
    #[must_use]
    pub fn next(&self, turns: &[i64], now: i64) -> Next {
        let fresh = |turn: i64| turn <= now && now - turn < MADE_UP_WITHIN;
        let last = self.last(now);
        // Of several that were missed the last stands for all.
        let missed = turns
            .iter()
            .copied()
            .filter(|&turn| turn > last && fresh(turn))
            .max();
        if let Some(turn) = missed {
            return Next::Begin(turn);
        }
        let ahead = turns.iter().copied().find(|&turn| turn > now.max(last));
        // One that has failed comes first, for as long as it would be made up.
        if !self.finished && fresh(self.turn) {
            let again = self.again_at();
            if again <= now {
                return Next::Begin(self.turn);
            }
            return Next::Wait(ahead.map_or(again, |ahead| ahead.min(again)));
        }
        ahead.map_or(Next::Never, Next::Wait)
    }

    /// The turn is begun now: to be kept before anything is done for it.
    #[must_use]
    pub fn begun(&self, turn: i64, now: i64) -> Self {
        let attempts = if turn == self.turn { self.attempts } else { 0 };
        Self {
            turn,
            attempts: attempts.saturating_add(1),
            finished: false,
            tried_at: Some(now),
            ..self.clone()
        }
    }

    /// The attempt has failed. Whether it was the last is told by `finished`.
    #[must_use]
    pub fn failed(&self, why: String) -> Self {
        Self {
            finished: self.attempts as usize > BACK_OFF.len(),
            outcome: Some(why),
            failing: true,
            ..self.clone()
        }
    }

    /// The attempt does not count: there was nothing wrong but the moment.
    #[must_use]
    pub fn put_off(&self) -> Self {
        Self {
            attempts: self.attempts.saturating_sub(1),
            ..self.clone()
        }
    }

    /// The attempt has succeeded, with what had changed up to `covers_to`.
    #[must_use]
    pub fn done(&self, covers_to: i64, outcome: String) -> Self {
        Self {
            finished: true,
            covers_to: Some(covers_to),
            outcome: Some(outcome),
            failing: false,
            ..self.clone()
        }
    }

    /// The last turn, unless a clock that was wrong by days has put it far ahead: no turn would ever come.
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

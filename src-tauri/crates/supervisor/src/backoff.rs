//! The back-off of a tier whose worker keeps crashing.

use std::time::Duration;
use tokio::time::Instant;

/// Consecutive crashes before the back-off starts.
const FREE: u32 = 3;
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);
/// After this many in a row, the tier is given up.
const ENOUGH: u32 = 10;

#[derive(Debug, Default)]
pub(crate) struct Backoff {
    pub(crate) crashes: u32,
    until: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetryDelay {
    None,
    For(Duration),
    /// Not before a change of the configuration or a stop.
    ForGood,
}

impl Backoff {
    /// Records a crash during a load, or before the worker was used.
    pub(crate) fn crashed(&mut self, now: Instant) {
        self.crashes = self.crashes.saturating_add(1);
        self.until = delay_after(self.crashes).map(|delay| now + delay);
    }

    pub(crate) fn rest(&self, now: Instant) -> RetryDelay {
        if self.crashes >= ENOUGH {
            return RetryDelay::ForGood;
        }
        let left = self.until.map(|until| until.saturating_duration_since(now));
        left.filter(|left| !left.is_zero())
            .map_or(RetryDelay::None, RetryDelay::For)
    }
}

/// Doubling from the third crash on.
fn delay_after(crashes: u32) -> Option<Duration> {
    let doublings = crashes.checked_sub(FREE)?;
    let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
    Some(SHORTEST.saturating_mul(factor).min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_two_crashes_the_pause_doubles_up_to_its_limit() {
        let seconds = |crashes| delay_after(crashes).map(|delay| delay.as_secs());
        let delays: Vec<_> = (0..10).map(seconds).collect();
        assert_eq!(delays[..3], [None; 3]);
        assert_eq!(
            delays[3..],
            [1, 2, 4, 8, 16, 30, 30].map(Some),
            "in whole seconds"
        );
        assert_eq!(seconds(u32::MAX), Some(30));
    }

    #[tokio::test(start_paused = true)]
    async fn every_pause_but_the_last_ends_with_its_time() {
        let mut backoff = Backoff::default();
        for _ in 0..FREE {
            assert_eq!(backoff.rest(Instant::now()), RetryDelay::None);
            backoff.crashed(Instant::now());
        }
        assert_eq!(backoff.rest(Instant::now()), RetryDelay::For(SHORTEST));
        tokio::time::advance(SHORTEST).await;
        for _ in FREE..ENOUGH {
            assert_eq!(backoff.rest(Instant::now()), RetryDelay::None);
            backoff.crashed(Instant::now());
            tokio::time::advance(LONGEST).await;
        }
        assert_eq!(backoff.rest(Instant::now()), RetryDelay::ForGood);
    }
}

//! Gives memory back to the system that the allocator keeps once something large has passed through: an answer, an import, a list.

use std::{process, time::Duration};
use tierbar_telemetry::{Process, held_by, return_memory};
use tokio::{
    task::spawn_blocking,
    time::{MissedTickBehavior, interval},
};
use tokio_util::sync::CancellationToken;

const EVERY: Duration = Duration::from_secs(10);
/// What is worth a walk through the allocator's lists.
const WORTH: u64 = 8 << 20;
/// As many looks, five minutes, lie between walks that find nothing: what is held may be in use.
const LONGEST_WAIT: u32 = 30;

#[derive(Debug, Clone, Copy)]
struct Looks {
    /// The least that was held, in bytes.
    least: u64,
    /// How many looks pass before the next walk, and how many did before the last one.
    left: u32,
    wait: u32,
}

/// Looks every ten seconds until the host closes.
pub(crate) async fn give_back(closing: CancellationToken) {
    let mut times = interval(EVERY);
    times.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut looks = Looks::NONE;
    while closing.run_until_cancelled(times.tick()).await.is_some() {
        looks = spawn_blocking(move || looks.after_one(held, return_memory))
            .await
            .unwrap_or(looks);
    }
}

fn held() -> Option<u64> {
    held_by(&[Process::of(process::id())?]).ok()
}

impl Looks {
    const NONE: Self = Self {
        least: u64::MAX,
        left: 0,
        wait: 0,
    };

    fn after_one(mut self, held: impl Fn() -> Option<u64>, give_back: impl FnOnce()) -> Self {
        let Some(now) = held() else {
            return self;
        };
        self.least = self.least.min(now);
        if now < self.least.saturating_add(WORTH) {
            (self.left, self.wait) = (0, 0);
        } else if self.left > 0 {
            self.left -= 1;
        } else {
            give_back();
            let after = held().unwrap_or(now);
            self.least = self.least.min(after);
            let is_in_use = now.saturating_sub(after) < WORTH;
            self.wait = if is_in_use {
                (2 * self.wait + 1).min(LONGEST_WAIT)
            } else {
                0
            };
            self.left = self.wait;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn what_is_held_beyond_the_least_is_given_back() {
        let (held, walks) = (Cell::new(0), Cell::new(0));
        let mut looks = Looks::NONE;
        // As much is held, of which so much is free.
        let mut look = |mib: u64, free: u64| {
            held.set(mib << 20);
            looks = looks.after_one(
                || Some(held.get()),
                || {
                    walks.set(walks.get() + 1);
                    held.set((mib - free) << 20);
                },
            );
            walks.get()
        };
        assert_eq!([look(25, 0), look(32, 0), look(60, 30)], [0, 0, 1]);
        // In use at first, and free later, when no more is held.
        assert_eq!([look(90, 0), look(90, 60), look(90, 60)], [2, 2, 3]);
        // What stays in use is walked through ever less often.
        let walks: Vec<u32> = (0..100).map(|_| look(90, 0) - 3).collect();
        assert_eq!((walks[0], walks[99]), (1, 7));
        assert_eq!(look(25, 0), look(26, 0));
        assert_eq!(look(90, 60), look(30, 0));
    }
}

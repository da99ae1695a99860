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

/// Looks every ten seconds until the host closes.
pub(crate) async fn give_back(closing: CancellationToken) {
    let mut times = interval(EVERY);
    times.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut level = None;
    while closing.run_until_cancelled(times.tick()).await.is_some() {
        level = spawn_blocking(move || settled(level, held, return_memory))
            .await
            .unwrap_or(level);
    }
}

fn held() -> Option<u64> {
    held_by(&[Process::of(process::id())?]).ok()
}

/// Returns the level to compare with: the last one that nothing could be taken from.
fn settled(
    level: Option<u64>,
    held: impl Fn() -> Option<u64>,
    give_back: impl FnOnce(),
) -> Option<u64> {
    let now = held()?;
    if level.is_some_and(|level| now < level.saturating_add(WORTH)) {
        return level.min(Some(now));
    }
    give_back();
    held()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn only_growth_since_the_last_time_is_given_back() {
        let (held, walks) = (Cell::new(30 << 20), Cell::new(0));
        let look = |level: Option<u64>, after: u64| {
            settled(
                level,
                || Some(held.get()),
                || {
                    walks.set(walks.get() + 1);
                    held.set(after);
                },
            )
        };
        let level = look(None, 25 << 20);
        assert_eq!((level, walks.get()), (Some(25 << 20), 1));
        held.set(32 << 20);
        assert_eq!((look(level, 0), walks.get()), (level, 1));
        // What is in use cannot be given back, and is tried once.
        held.set(90 << 20);
        let level = look(level, 90 << 20);
        assert_eq!((level, walks.get()), (Some(90 << 20), 2));
        let level = look(level, 0);
        held.set(40 << 20);
        let level = look(level, 0);
        assert_eq!((level, walks.get()), (Some(40 << 20), 2));
        held.set(60 << 20);
        look(level, 41 << 20);
        assert_eq!(walks.get(), 3);
    }
}

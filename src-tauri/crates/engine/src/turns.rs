//! Turns to compute: tokens and media are evaluated alternately, so that no more threads compute than configured.

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::{collections::VecDeque, time::Duration};

/// How often a waiting thread checks whether it still needs its turn.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

#[derive(Debug, Default)]
pub(crate) struct Turns {
    line: Mutex<TurnQueue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct TurnQueue {
    /// The first has the turn.
    tickets: VecDeque<u64>,
    given: u64,
}

/// A turn, which ends when it is dropped.
#[derive(Debug)]
pub(crate) struct ComputeTurn<'a>(&'a Turns);

impl Turns {
    /// Waits for a turn, after all earlier requests.
    pub(crate) fn take(&self) -> ComputeTurn<'_> {
        self.wait();
        ComputeTurn(self)
    }

    /// As [`Self::take`], but returns `None` soon after `left` returns `true`.
    pub(crate) fn take_unless(&self, left: impl Fn() -> bool) -> Option<ComputeTurn<'_>> {
        let (ticket, mut line) = self.join_line();
        while line.tickets.front() != Some(&ticket) {
            if left() {
                line.tickets.retain(|&other| other != ticket);
                return None;
            }
            self.changed.wait_for(&mut line, POLL_INTERVAL);
        }
        Some(ComputeTurn(self))
    }

    /// Returns whether another thread waits for the current turn.
    pub(crate) fn is_wanted(&self) -> bool {
        self.line.lock().tickets.len() > 1
    }

    /// Passes the current turn on, runs `between`, and waits for the next turn.
    pub(crate) fn pass(&self, between: impl FnOnce()) {
        self.end();
        between();
        self.wait();
    }

    fn wait(&self) {
        let (ticket, mut line) = self.join_line();
        let others = |line: &mut TurnQueue| line.tickets.front() != Some(&ticket);
        self.changed.wait_while(&mut line, others);
    }

    fn join_line(&self) -> (u64, MutexGuard<'_, TurnQueue>) {
        let mut line = self.line.lock();
        let ticket = line.given;
        line.given += 1;
        line.tickets.push_back(ticket);
        (ticket, line)
    }

    fn end(&self) {
        self.line.lock().tickets.pop_front();
        self.changed.notify_all();
    }
}

impl Drop for ComputeTurn<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        sync::atomic::{AtomicBool, AtomicUsize, Ordering},
        thread::{scope, yield_now},
    };

    #[test]
    fn a_passed_turn_comes_back_after_the_waiting_thread() {
        let turns = Turns::default();
        let log = Mutex::new(Vec::new());
        let record = |who| log.lock().push(who);
        scope(|scope| {
            let turn = turns.take();
            assert!(!turns.is_wanted());
            for round in 0..100 {
                scope.spawn(|| {
                    let _turn = turns.take();
                    record("other");
                });
                while !turns.is_wanted() {
                    yield_now();
                }
                assert_eq!(log.lock().len(), 2 * round);
                turns.pass(|| ());
                record("first");
            }
            drop(turn);
        });
        let pairs = log.into_inner();
        assert!(pairs.chunks(2).all(|pair| pair == ["other", "first"]));
    }

    #[test]
    fn a_cancelled_wait_leaves_the_line() {
        let turns = Turns::default();
        let wanted = AtomicBool::new(true);
        scope(|scope| {
            let turn = turns.take();
            let leaving = scope.spawn(|| {
                let turn = turns.take_unless(|| !wanted.load(Ordering::SeqCst));
                turn.is_none()
            });
            while !turns.is_wanted() {
                yield_now();
            }
            let staying = scope.spawn(|| turns.take_unless(|| false).is_some());
            while turns.line.lock().tickets.len() < 3 {
                yield_now();
            }
            wanted.store(false, Ordering::SeqCst);
            assert!(leaving.join().unwrap());
            assert!(turns.is_wanted());
            drop(turn);
            assert!(staying.join().unwrap());
        });
        assert!(turns.line.lock().tickets.is_empty());
        // A free turn is taken at once.
        assert!(turns.take_unless(|| true).is_some());
    }

    #[test]
    fn one_thread_computes_at_a_time() {
        let turns = Turns::default();
        let computing = AtomicUsize::new(0);
        scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let _turn = turns.take();
                        assert_eq!(computing.fetch_add(1, Ordering::SeqCst), 0);
                        yield_now();
                        computing.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
    }
}

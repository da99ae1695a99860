//! Who computes: tokens and media are evaluated in turn, so that no more threads compute than were asked for.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

#[derive(Debug, Default)]
pub(crate) struct Turns {
    line: Mutex<Line>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Line {
    /// The first has the turn.
    tickets: VecDeque<u64>,
    given: u64,
}

/// The turn of whoever holds it, which ends with it.
#[derive(Debug)]
pub(crate) struct Turn<'a>(&'a Turns);

impl Turns {
    /// Waits until all who asked before have had theirs.
    pub(crate) fn take(&self) -> Turn<'_> {
        self.wait();
        Turn(self)
    }

    /// Whether somebody waits for the turn that runs.
    pub(crate) fn is_wanted(&self) -> bool {
        self.line().tickets.len() > 1
    }

    /// By who has the turn: gives it to who waits, and takes the next one after `between`.
    pub(crate) fn pass(&self, between: impl FnOnce()) {
        self.end();
        between();
        self.wait();
    }

    fn wait(&self) {
        let mut line = self.line();
        let ticket = line.given;
        line.given += 1;
        line.tickets.push_back(ticket);
        let others = |line: &mut Line| line.tickets.front() != Some(&ticket);
        let _line = self.changed.wait_while(line, others);
    }

    fn end(&self) {
        self.line().tickets.pop_front();
        self.changed.notify_all();
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        sync::atomic::{AtomicUsize, Ordering},
        thread::{scope, yield_now},
    };

    #[test]
    fn who_passes_the_turn_has_the_next_one_behind_who_waited() {
        let turns = Turns::default();
        let said = Mutex::new(Vec::new());
        let say = |who| said.lock().unwrap().push(who);
        scope(|scope| {
            let turn = turns.take();
            assert!(!turns.is_wanted());
            for round in 0..100 {
                scope.spawn(|| {
                    let _turn = turns.take();
                    say("other");
                });
                while !turns.is_wanted() {
                    yield_now();
                }
                assert_eq!(said.lock().unwrap().len(), 2 * round);
                turns.pass(|| ());
                say("first");
            }
            drop(turn);
        });
        let pairs = said.into_inner().unwrap();
        assert!(pairs.chunks(2).all(|pair| pair == ["other", "first"]));
    }

    #[test]
    fn one_computes_at_a_time() {
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

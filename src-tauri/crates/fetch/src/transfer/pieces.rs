//! Which bytes are fetched next, and by whom.

use parking_lot::Mutex;
use std::{sync::Arc, time::Duration};

/// Below this a request costs more than the bytes that it brings.
pub(super) const SMALLEST: u64 = 1 << 20;
const LARGEST: u64 = 64 << 20;
/// What one request should take: long enough that the round trip before it does not matter, short enough that
/// the file arrives front to back.
const SPAN: Duration = Duration::from_millis(1500);

/// The size of the next piece of a connection of this rate.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped; a float's cast saturates"
)]
pub(super) fn size_at(bytes_per_second: f64) -> u64 {
    ((bytes_per_second * SPAN.as_secs_f64()) as u64).clamp(SMALLEST, LARGEST)
}

/// A run of bytes that one connection fetches, and whose end another may take over.
#[derive(Debug)]
pub(super) struct Piece(Mutex<(u64, u64)>);

impl Piece {
    fn new(next: u64, end: u64) -> Arc<Self> {
        Arc::new(Self(Mutex::new((next, end))))
    }

    /// The part of it that is still to come: `next..end`.
    pub(super) fn rest(&self) -> (u64, u64) {
        *self.0.lock()
    }

    /// Takes the next bytes, at most `most`: where they belong, and how many. They must be written then.
    pub(super) fn claim(&self, most: usize) -> (u64, usize) {
        let mut rest = self.0.lock();
        let (next, end) = *rest;
        let length = usize::try_from(end - next).map_or(most, |left| left.min(most));
        rest.0 += length as u64;
        (next, length)
    }

    /// Cuts off everything after `keep` bytes from here.
    fn cut(&self, keep: u64) -> (u64, u64) {
        let mut rest = self.0.lock();
        let at = (rest.0 + keep).min(rest.1);
        let taken = (at, rest.1);
        rest.1 = at;
        taken
    }
}

/// The parts that no connection downloads yet, in order.
#[derive(Debug, Default)]
pub(super) struct Plan {
    gaps: Vec<(u64, u64)>,
}

impl Plan {
    pub(super) fn new(gaps: Vec<(u64, u64)>) -> Self {
        Self { gaps }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.gaps.is_empty()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.gaps.iter().map(|(start, end)| end - start).sum()
    }

    pub(super) fn next(&mut self, size: u64) -> Option<Arc<Piece>> {
        let &(start, end) = self.gaps.first()?;
        // No crumbs: what would be left of a gap is taken along.
        self.next_until(match end - start < size + SMALLEST {
            true => end,
            false => start + size,
        })
    }

    pub(super) fn next_until(&mut self, end: u64) -> Option<Arc<Piece>> {
        let gap = self.gaps.first_mut()?;
        let (start, cut) = (gap.0, end.min(gap.1));
        gap.0 = cut;
        if cut == gap.1 {
            self.gaps.remove(0);
        }
        Some(Piece::new(start, cut))
    }

    /// What a connection did not get done. It keeps nothing.
    pub(super) fn give_back(&mut self, piece: &Piece) {
        let (start, end) = piece.cut(0);
        if start < end {
            let at = self.gaps.partition_point(|gap| gap.0 < start);
            self.gaps.insert(at, (start, end));
        }
    }
}

/// A piece that is being fetched, as seen by a connection without work.
#[derive(Debug, Clone, Copy)]
pub(super) struct BusyPiece {
    pub(super) rest: u64,
    pub(super) bytes_per_second: f64,
    /// How long that has been measured.
    pub(super) working: Duration,
    /// How long it has been without a byte.
    pub(super) silent: Duration,
    /// Taken over once already.
    pub(super) retaken: bool,
}

/// At the end of a file, the others must not wait for a slow connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relief {
    Half,
    /// It is silent, or very slow with too little to share: another connection fetches everything.
    All,
}

/// Longer than a busy server's pause, much shorter than a stall.
const SILENCE: Duration = Duration::from_secs(3);
/// A new connection takes a few round trips to be any good.
const WORTH: Duration = Duration::from_secs(1);
/// If a connection takes longer than this for the end of the file, another one tries it, too.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn relief(busy: BusyPiece) -> Option<Relief> {
    if busy.silent >= SILENCE {
        return (!busy.retaken && busy.rest > 0).then_some(Relief::All);
    }
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let seconds_left = busy.rest as f64 / busy.bytes_per_second.max(1.0);
    if busy.rest >= 2 * SMALLEST {
        return (seconds_left > WORTH.as_secs_f64()).then_some(Relief::Half);
    }
    let slow = busy.working >= SILENCE && seconds_left > PATIENCE.as_secs_f64();
    (slow && !busy.retaken).then_some(Relief::All)
}

pub(super) fn relieve(piece: &Piece, relief: Relief) -> Arc<Piece> {
    let (next, end) = piece.rest();
    let (start, end) = match relief {
        Relief::Half => piece.cut((end - next) / 2),
        Relief::All => piece.cut(0),
    };
    Piece::new(start, end)
}

#[cfg(test)]
mod tests;

//! The memory of what is held of answers, of all requests together: servers do not know of each other.

use crate::error::for_seconds;
use bytes::Bytes;
use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use tierbar_core::{Code, Error};

/// Twice the longest answer, and many usual ones besides.
const MOST: usize = 256 << 20;

/// What is held is counted in steps, and less than one is not counted: the lines of usual streams cost nothing.
const STEP: usize = 64 << 10;

/// The `Retry-After`, in seconds: the time is unknown.
const SOON: u64 = 2;

static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// A share of the memory, given back when dropped.
#[derive(Debug, Default)]
pub(crate) struct Share(usize);

impl Share {
    /// Takes as much more, or gives as much back, as makes it this large.
    fn resize(&mut self, bytes: usize) -> Result<(), Error> {
        match bytes.checked_sub(self.0) {
            Some(more) => take(&TAKEN, more, MOST, "answers")?,
            None => {
                TAKEN.fetch_sub(self.0 - bytes, Ordering::AcqRel);
            }
        }
        self.0 = bytes;
        Ok(())
    }

    /// Has it cover so many bytes, in steps.
    ///
    /// # Errors
    /// `Overloaded` if there is no room.
    pub(crate) fn cover(&mut self, bytes: usize) -> Result<(), Error> {
        match steps(bytes) {
            covered if covered == self.0 => Ok(()),
            covered => self.resize(covered),
        }
    }

    /// Keeps what covers so many bytes, and returns the rest.
    pub(crate) fn keep(&mut self, bytes: usize) -> Self {
        let kept = steps(bytes).min(self.0);
        let rest = self.0 - kept;
        self.0 = kept;
        Self(rest)
    }

    /// Counts bytes that take the place of others, which are given back: they are never refused.
    pub(crate) fn moved(bytes: usize) -> Self {
        let covered = steps(bytes);
        TAKEN.fetch_add(covered, Ordering::AcqRel);
        Self(covered)
    }

    /// Returns the bytes, with which the share is given back.
    pub(crate) fn hold(self, bytes: Bytes) -> Bytes {
        match self.0 {
            0 => bytes,
            _ => held(bytes, &Arc::new(self)),
        }
    }

    /// Returns pieces, with the last of which the share is given back.
    fn hold_all(self, pieces: Vec<Bytes>) -> Vec<Bytes> {
        let share = Arc::new(self);
        let pieces = pieces.into_iter();
        pieces.map(|bytes| held(bytes, &share)).collect()
    }
}

/// Returns the pieces of an answer on their way to its client, which may be slow: they count until they have left.
pub fn leaving(pieces: Vec<Bytes>) -> Vec<Bytes> {
    if pieces.iter().map(Bytes::len).sum::<usize>() < STEP {
        return pieces;
    }
    // Several may share one text.
    let texts = pieces.iter().map(|piece| (piece.as_ptr(), piece.len()));
    let texts: HashSet<_> = texts.collect();
    let bytes = texts.into_iter().map(|(_, length)| length).sum();
    Share::moved(bytes).hold_all(pieces)
}

fn held(bytes: Bytes, share: &Arc<Share>) -> Bytes {
    Bytes::from_owner(HeldBytes {
        bytes,
        _share: Arc::clone(share),
    })
}

fn steps(bytes: usize) -> usize {
    bytes / STEP * STEP
}

impl Drop for Share {
    fn drop(&mut self) {
        if self.0 > 0 {
            TAKEN.fetch_sub(self.0, Ordering::AcqRel);
        }
    }
}

struct HeldBytes {
    bytes: Bytes,
    _share: Arc<Share>,
}

impl AsRef<[u8]> for HeldBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Counts so much more as taken, of the memory of `what`.
///
/// # Errors
/// `Overloaded` if that is more than `most`.
pub fn take(taken: &AtomicUsize, more: usize, most: usize, what: &str) -> Result<(), Error> {
    let grown = taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, |bytes| {
        bytes.checked_add(more).filter(|bytes| *bytes <= most)
    });
    if grown.is_ok() {
        return Ok(());
    }
    let most = most >> 20;
    let message = format!("the limit of {most} MiB for the memory of {what} is reached");
    let full = Error::new(Code::Overloaded, message).hint(format!("try again in {SOON} s"));
    Err(for_seconds(full, SOON))
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;

    /// One test at a time takes more than half.
    static MUCH: Mutex<()> = Mutex::new(());

    impl Share {
        pub(crate) fn bytes(&self) -> usize {
            self.0
        }
    }

    #[test]
    fn an_answer_gives_its_share_back_with_its_last_bytes() {
        let _much = MUCH.lock();
        let mut share = Share::default();
        share.resize(MOST / 2 + 1).unwrap();
        let full = Share::default().resize(MOST / 2).unwrap_err();
        assert_eq!(full.code, Code::Overloaded);
        let bytes = share.hold(Bytes::from(vec![0_u8; 9]));
        let part = bytes.slice(3..);
        drop(bytes);
        assert!(Share::default().resize(MOST / 2).is_err());
        drop(part);
        let mut other = Share::default();
        other.resize(MOST / 2 + 1).unwrap();
        other.resize(9).unwrap();
        Share::default().resize(MOST / 2).unwrap();
    }

    #[test]
    fn what_leaves_takes_its_part_of_a_share_with_it() {
        let _much = MUCH.lock();
        let mut share = Share::default();
        share.cover(STEP - 1).unwrap();
        assert_eq!(share.bytes(), 0);
        share.cover(MOST / 2 + STEP).unwrap();
        let leaves = share.keep(STEP + 9);
        assert_eq!((share.bytes(), leaves.bytes()), (STEP, MOST / 2));
        let bytes = leaves.hold(Bytes::from(vec![0_u8; 9]));
        let full = Share::default().cover(MOST / 2).unwrap_err();
        assert_eq!(full.code, Code::Overloaded);
        drop(bytes);
        Share::default().cover(MOST / 2).unwrap();
    }

    #[test]
    fn an_answer_counts_until_its_pieces_have_left() {
        let _much = MUCH.lock();
        let text = Bytes::from(vec![0_u8; MOST / 2 + STEP]);
        let mut pieces = leaving(vec![text.clone(), text]);
        Share::default().cover(STEP).unwrap();
        assert!(Share::default().cover(MOST / 2).is_err());
        pieces.pop();
        assert!(Share::default().cover(MOST / 2).is_err());
        pieces.pop();
        Share::default().cover(MOST / 2).unwrap();
    }
}

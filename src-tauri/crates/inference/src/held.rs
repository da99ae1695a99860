//! The memory that requests and answers take, of all of them together: clients and servers do not know of each other.

use crate::{caller::Caller, error::for_seconds};
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

/// One part in so many is kept for the owner, whom no other client can lock out.
pub const KEPT_PART: usize = 8;

static ANSWERS: Room = Room::new("answers", MOST);

/// Memory that many take from. A part is kept for the owner, and an account may take half.
#[derive(Debug)]
pub struct Room {
    what: &'static str,
    most: usize,
    taken: AtomicUsize,
}

impl Room {
    /// So many bytes, for `what`.
    pub const fn new(what: &'static str, most: usize) -> Self {
        Self {
            what,
            most,
            taken: AtomicUsize::new(0),
        }
    }

    /// Takes so much more. `own`: what the account has taken, if it is for one.
    ///
    /// # Errors
    /// `Overloaded` if there is no room.
    pub fn take(
        &self,
        more: usize,
        is_owner: bool,
        own: Option<&AtomicUsize>,
    ) -> Result<(), Error> {
        let kept = if is_owner { 0 } else { self.most / KEPT_PART };
        if let Some(own) = own {
            self.add(own, more, self.most / 2)?;
        }
        let taken = self.add(&self.taken, more, self.most - kept);
        if let (Err(_), Some(own)) = (&taken, own) {
            own.fetch_sub(more, Ordering::AcqRel);
        }
        taken
    }

    /// Gives so much back.
    pub fn give_back(&self, less: usize, own: Option<&AtomicUsize>) {
        for taken in own.into_iter().chain([&self.taken]) {
            taken.fetch_sub(less, Ordering::AcqRel);
        }
    }

    /// Returns what is taken now, in bytes.
    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Acquire)
    }

    fn add(&self, taken: &AtomicUsize, more: usize, most: usize) -> Result<(), Error> {
        let grown = taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, |bytes| {
            bytes.checked_add(more).filter(|bytes| *bytes <= most)
        });
        if grown.is_ok() {
            return Ok(());
        }
        let (most, what) = (most >> 20, self.what);
        let message = format!("the limit of {most} MiB for the memory of {what} is reached");
        let full = Error::new(Code::Overloaded, message).hint(format!("try again in {SOON} s"));
        Err(for_seconds(full, SOON))
    }
}

/// A share of the memory for answers, for the caller of the request that it is made in. It is given back when dropped.
#[derive(Debug)]
pub(crate) struct Share {
    bytes: usize,
    caller: Caller,
}

impl Default for Share {
    fn default() -> Self {
        Self {
            bytes: 0,
            caller: Caller::of_this_request(),
        }
    }
}

impl Share {
    /// Takes as much more, or gives as much back, as makes it this large.
    fn resize(&mut self, bytes: usize) -> Result<(), Error> {
        let (caller, own) = (&self.caller, self.caller.answers());
        match bytes.checked_sub(self.bytes) {
            Some(more) => ANSWERS.take(more, caller.is_owner(), own)?,
            None => ANSWERS.give_back(self.bytes - bytes, own),
        }
        self.bytes = bytes;
        Ok(())
    }

    /// Has it cover so many bytes, in steps.
    ///
    /// # Errors
    /// `Overloaded` if there is no room.
    pub(crate) fn cover(&mut self, bytes: usize) -> Result<(), Error> {
        match steps(bytes) {
            covered if covered == self.bytes => Ok(()),
            covered => self.resize(covered),
        }
    }

    /// Keeps what covers so many bytes, and returns the rest.
    pub(crate) fn keep(&mut self, bytes: usize) -> Self {
        let kept = steps(bytes).min(self.bytes);
        let rest = self.bytes - kept;
        self.bytes = kept;
        Self {
            bytes: rest,
            caller: self.caller.clone(),
        }
    }

    /// Counts bytes that take the place of others, which are given back: they are never refused.
    pub(crate) fn moved(bytes: usize) -> Self {
        let share = Self {
            bytes: steps(bytes),
            caller: Caller::of_this_request(),
        };
        let own = share.caller.answers();
        for taken in own.into_iter().chain([&ANSWERS.taken]) {
            taken.fetch_add(share.bytes, Ordering::AcqRel);
        }
        share
    }

    /// Returns the bytes, with which the share is given back.
    pub(crate) fn hold(self, bytes: Bytes) -> Bytes {
        match self.bytes {
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
        if self.bytes > 0 {
            ANSWERS.give_back(self.bytes, self.caller.answers());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::Account;
    use parking_lot::Mutex;

    /// One test at a time takes more than half.
    static MUCH: Mutex<()> = Mutex::new(());

    impl Share {
        pub(crate) fn bytes(&self) -> usize {
            self.bytes
        }
    }

    #[derive(Debug, Default)]
    struct Greedy(AtomicUsize);

    impl Account for Greedy {
        fn id(&self) -> &'static str {
            "1"
        }

        fn name(&self) -> &'static str {
            "greedy"
        }

        fn count(&self, _more: u32) {}

        fn spend(&self, _tokens: u64) {}

        fn answers(&self) -> &AtomicUsize {
            &self.0
        }
    }

    #[test]
    fn a_part_is_kept_for_the_owner_and_an_account_has_half() {
        let (room, one, other) = (Room::new("x", 64), AtomicUsize::new(0), AtomicUsize::new(0));
        room.take(32, false, Some(&one)).unwrap();
        assert!(room.take(1, false, Some(&one)).is_err());
        room.take(24, false, None).unwrap();
        for own in [None, Some(&other)] {
            let full = room.take(1, false, own).unwrap_err();
            assert_eq!(full.code, Code::Overloaded);
        }
        room.take(8, true, None).unwrap();
        assert!(room.take(1, true, None).is_err());
        let taken = [&room.taken, &one, &other].map(|taken| taken.load(Ordering::Relaxed));
        assert_eq!(taken, [64, 32, 0], "what is refused is not taken");
        room.give_back(32, Some(&one));
        room.take(9, true, None).unwrap();
        assert_eq!((room.taken(), one.into_inner()), (41, 0));
    }

    #[test]
    fn no_account_takes_the_memory_of_others_answers() {
        let _much = MUCH.lock();
        let account = Arc::new(Greedy::default());
        let caller = Caller::from(Arc::clone(&account) as Arc<dyn Account>);
        let mut share = caller.sync_scope(Share::default);
        share.cover(MOST / 2).unwrap();
        assert_eq!(
            share.cover(MOST / 2 + STEP).unwrap_err().code,
            Code::Overloaded
        );
        let leaves = share.keep(STEP).hold(Bytes::from(vec![0_u8; 9]));
        let moved = caller.sync_scope(|| Share::moved(STEP));
        let taken = || account.0.load(Ordering::Relaxed);
        assert_eq!(taken(), MOST / 2 + STEP);
        // Others still have room.
        Share::default().cover(MOST / 4).unwrap();
        drop(leaves);
        assert_eq!(taken(), 2 * STEP);
        drop((share, moved));
        assert_eq!(taken(), 0);
    }

    #[test]
    fn programs_without_a_key_take_half_at_most() {
        let _much = MUCH.lock();
        let share = || Caller::Program.sync_scope(Share::default);
        let (mut one, mut other) = (share(), share());
        one.cover(MOST / 2).unwrap();
        let full = other.cover(STEP).unwrap_err();
        assert_eq!(full.code, Code::Overloaded);
        drop(one);
        other.cover(STEP).unwrap();
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

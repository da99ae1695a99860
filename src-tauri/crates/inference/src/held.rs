//! The memory of the answers that are held whole, of all requests together: servers do not know of each other.

use crate::error::for_seconds;
use bytes::Bytes;
use std::sync::atomic::{AtomicUsize, Ordering};
use tierbar_core::{Code, Error};

/// Twice the longest answer, and many usual ones besides.
const MOST: usize = 256 << 20;

/// The `Retry-After`, in seconds: the time is unknown.
const SOON: u64 = 2;

static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// A share of the memory, given back when dropped.
#[derive(Debug, Default)]
pub(crate) struct Share(usize);

impl Share {
    /// Takes as much more, or gives as much back, as makes it this large.
    pub(crate) fn resize(&mut self, bytes: usize) -> Result<(), Error> {
        match bytes.checked_sub(self.0) {
            Some(more) => take(&TAKEN, more, MOST)?,
            None => {
                TAKEN.fetch_sub(self.0 - bytes, Ordering::AcqRel);
            }
        }
        self.0 = bytes;
        Ok(())
    }

    /// Returns the bytes, with which the share is given back.
    pub(crate) fn hold(self, bytes: Vec<u8>) -> Bytes {
        Bytes::from_owner(HeldBytes {
            bytes,
            _share: self,
        })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        TAKEN.fetch_sub(self.0, Ordering::AcqRel);
    }
}

struct HeldBytes {
    bytes: Vec<u8>,
    _share: Share,
}

impl AsRef<[u8]> for HeldBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Counts so much more as taken.
///
/// # Errors
/// `Overloaded` if that is more than `most`.
pub fn take(taken: &AtomicUsize, more: usize, most: usize) -> Result<(), Error> {
    let grown = taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, |bytes| {
        bytes.checked_add(more).filter(|bytes| *bytes <= most)
    });
    if grown.is_ok() {
        return Ok(());
    }
    let most = most >> 20;
    let message = format!("the limit of {most} MiB for the memory of requests is reached");
    let full = Error::new(Code::Overloaded, message).hint(format!("try again in {SOON} s"));
    Err(for_seconds(full, SOON))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_gives_its_share_back_with_its_last_bytes() {
        let mut share = Share::default();
        share.resize(MOST / 2 + 1).unwrap();
        let full = Share::default().resize(MOST / 2).unwrap_err();
        assert_eq!(full.code, Code::Overloaded);
        let bytes = share.hold(vec![0; 9]);
        let part = bytes.slice(3..);
        drop(bytes);
        assert!(Share::default().resize(MOST / 2).is_err());
        drop(part);
        let mut other = Share::default();
        other.resize(MOST / 2 + 1).unwrap();
        other.resize(9).unwrap();
        Share::default().resize(MOST / 2).unwrap();
    }
}

//! Computes the sha256 of a file, arriving or complete, without filling the page cache.

use super::{SharedState, full_or_broken};
use crate::platform;
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use std::{fs::File, io, os::unix::fs::FileExt};

/// The size of one read: large enough that system calls cost little.
pub(super) const HASHED_AT_ONCE: usize = 1 << 20;
/// How much of the file may stay in the page cache before it is dropped.
pub(super) const FORGOTTEN_AT_ONCE: u64 = 8 << 20;

/// Hashes the arriving file. Calls `forget` with the end of the part that is on the disk and hashed: always from the start
/// of the file, because the cache drops groups of pages only as a whole.
pub(super) fn hash(shared: &SharedState, file: &File, forget: impl Fn(u64)) -> Option<String> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; HASHED_AT_ONCE];
    let mut forgotten = 0;
    loop {
        let (from, to, synced) = {
            let mut state = shared.state.lock();
            loop {
                if state.abandoned {
                    return None;
                }
                if Some(state.hashed) == state.total {
                    return Some(HEXLOWER.encode(&hasher.finalize()));
                }
                if state.written.prefix() > state.hashed {
                    break;
                }
                shared.changed.wait(&mut state);
            }
            (state.hashed, state.written.prefix(), state.synced)
        };
        let clean = synced.min(from);
        if clean >= forgotten + FORGOTTEN_AT_ONCE {
            forget(clean);
            forgotten = clean;
        }
        let length =
            usize::try_from(to - from).map_or(HASHED_AT_ONCE, |left| left.min(HASHED_AT_ONCE));
        let block = &mut buffer[..length];
        if let Err(error) = file.read_exact_at(block, from) {
            shared.fail(full_or_broken(&error));
            return None;
        }
        hasher.update(&*block);
        shared.change(|state| state.hashed = from + length as u64);
    }
}

/// Returns the sha256 of a complete file in lower-case hex. Blocking; leaves nothing of the file in the page cache, which would count
/// against the memory for models. `on_bytes` is called with the size of each piece; once it returns `false`, the result is `None`.
///
/// # Errors
/// Those of reading.
pub fn sha256_of(file: &File, mut on_bytes: impl FnMut(u64) -> bool) -> io::Result<Option<String>> {
    platform::spare_cache(file);
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; HASHED_AT_ONCE];
    let (mut at, mut forgotten) = (0, 0);
    loop {
        let read = file.read_at(&mut buffer, at)?;
        if read == 0 {
            platform::drop_cached(file, 0, at);
            return Ok(Some(HEXLOWER.encode(&hasher.finalize())));
        }
        hasher.update(&buffer[..read]);
        at += read as u64;
        if at >= forgotten + FORGOTTEN_AT_ONCE {
            platform::drop_cached(file, 0, at);
            forgotten = at;
        }
        if !on_bytes(read as u64) {
            return Ok(None);
        }
    }
}

//! Writes the bytes of one file with three threads: the writer takes blocks from the connections; the keeper syncs what was
//! written before the journal lists it; the hasher reads the part without gaps just after it was written, so that at
//! the end only the tail is left to hash.

mod hasher;

pub use hasher::sha256_of;

use super::{
    Terms, destination,
    journal::{Identity, Paths},
    ranges::Ranges,
};
use crate::platform;
use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use std::{
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};
use tierbar_core::{Code, Error};
use tokio::{
    sync::{Notify, mpsc},
    task::{JoinHandle, spawn_blocking},
};
use tokio_util::sync::CancellationToken;

/// The number of blocks that may wait for the writer. One holds a single read of a connection, at most 408 KiB.
const WAITING: usize = 16;
/// The first journals are written sooner, so that a download killed in its first second can resume.
const FIRST_JOURNAL: Duration = Duration::from_millis(50);
/// Bytes freed on a full volume to make room for the journal; they are downloaded again later.
const SPARE: u64 = 256 << 10;

/// The offset of a block, and its bytes.
pub(super) type Block = (u64, Bytes);

#[derive(Debug, Default)]
struct State {
    written: Ranges,
    /// The end of the part from the start that is synced without gaps.
    synced: u64,
    hashed: u64,
    total: Option<u64>,
    trouble: Option<Error>,
    ended: bool,
    /// The hash is no longer needed.
    abandoned: bool,
}

#[derive(Debug, Default)]
struct SharedState {
    state: Mutex<State>,
    changed: Condvar,
    troubled: Notify,
}

impl SharedState {
    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock());
        self.changed.notify_all();
    }

    fn fail(&self, error: Error) {
        self.change(|state| {
            state.trouble.get_or_insert(error);
        });
        self.troubled.notify_one();
    }
}

/// Ends the hasher once its result is no longer needed.
#[derive(Debug)]
struct Interest(Arc<SharedState>);

impl Drop for Interest {
    fn drop(&mut self) {
        self.0.change(|state| state.abandoned = true);
    }
}

#[derive(Debug)]
pub(super) struct Disk {
    interest: Interest,
    blocks: mpsc::Sender<Block>,
    writer: JoinHandle<()>,
    keeper: JoinHandle<()>,
    hasher: JoinHandle<Option<String>>,
}

impl Disk {
    /// Starts the threads. Without `identity`, no journal is written, as for a server that cannot resume.
    pub(super) fn start(
        file: &Arc<File>,
        paths: &Paths,
        written: Ranges,
        total: Option<u64>,
        identity: Option<Identity>,
        terms: &Terms,
    ) -> Self {
        let shared = Arc::new(SharedState {
            state: Mutex::new(State {
                synced: written.prefix(),
                written,
                total,
                ..State::default()
            }),
            ..SharedState::default()
        });
        let (blocks, received) = mpsc::channel(WAITING);
        let writer = spawn_blocking({
            let (shared, file) = (shared.clone(), file.clone());
            move || write_blocks(&shared, &file, received)
        });
        let hasher = spawn_blocking({
            let (shared, file) = (shared.clone(), file.clone());
            move || hasher::hash(&shared, &file, |end| platform::drop_cached(&file, 0, end))
        });
        let keeper = spawn_blocking({
            let (shared, file, paths) = (shared.clone(), file.clone(), paths.clone());
            let (journal_every, margin) = (terms.journal_every, terms.margin);
            move || {
                let keeping = KeeperEffects {
                    sync: &|| platform::sync(&file),
                    store: &|ranges| {
                        destination::check_in_place(&file, &paths.part)?;
                        match &identity {
                            Some(identity) => {
                                paths.write_journal(identity, ranges, &platform::sync)
                            }
                            None => Ok(()),
                        }
                    },
                    give_back: &|end| file.set_len(end),
                    room: &|| destination::check_remaining_space(&file, &paths.part, margin),
                };
                keep_blocks(&shared, &paths.part, journal_every, &keeping);
            }
        });
        Self {
            interest: Interest(shared),
            blocks,
            writer,
            keeper,
            hasher,
        }
    }

    fn shared(&self) -> &SharedState {
        &self.interest.0
    }

    pub(super) fn blocks(&self) -> mpsc::Sender<Block> {
        self.blocks.clone()
    }

    pub(super) fn received(&self) -> u64 {
        self.shared().state.lock().written.bytes()
    }

    pub(super) fn is_hashed(&self) -> bool {
        let state = self.shared().state.lock();
        Some(state.hashed) == state.total
    }

    /// Returns the error that stopped writing.
    pub(super) fn trouble(&self) -> Option<Error> {
        self.shared().state.lock().trouble.clone()
    }

    /// Returns once there may be trouble.
    pub(super) async fn troubled(&self) {
        self.shared().troubled.notified().await;
    }

    /// Writes what has been handed over, and has the journal claim it.
    ///
    /// # Errors
    /// [`Code::Storage`] if the disk did not take it.
    pub(super) async fn close(self) -> Result<(), Error> {
        drop(self.blocks);
        join(self.writer).await?;
        let shared = self.interest.0.clone();
        drop(self.interest);
        join(self.keeper).await?;
        join(self.hasher).await?;
        let trouble = shared.state.lock().trouble.take();
        trouble.map_or(Ok(()), Err)
    }

    /// Says how long the file is, now that all of it has been handed over, and gives its sha256.
    ///
    /// # Errors
    /// As [`Disk::close`]; [`Code::Cancelled`]; [`Code::Internal`] if a byte was never handed over.
    pub(super) async fn finish(
        self,
        total: u64,
        cancel: &CancellationToken,
    ) -> Result<String, Error> {
        drop(self.blocks);
        join(self.writer).await?;
        let shared = self.interest.0.clone();
        let prefix = {
            let mut state = shared.state.lock();
            state.total = Some(total);
            // Without all bytes there is nothing to wait for.
            state.abandoned |= state.written.prefix() != total;
            state.written.prefix()
        };
        shared.changed.notify_all();
        let mut hasher = self.hasher;
        let hash = tokio::select! {
            hash = &mut hasher => hash,
            () = cancel.cancelled() => {
                drop(self.interest);
                hasher.await
            }
        };
        join(self.keeper).await?;
        if let Some(trouble) = shared.state.lock().trouble.take() {
            return Err(trouble);
        }
        match hash {
            // Also where the hash was quicker.
            _ if cancel.is_cancelled() => Err(super::canceled_error()),
            Ok(Some(hash)) => Ok(hash),
            _ => Err(Error::new(
                Code::Internal,
                format!(
                    "{prefix} of {total} bytes were written and hashed, and nothing was left to fetch"
                ),
            )),
        }
    }
}

async fn join<T>(thread: JoinHandle<T>) -> Result<T, Error> {
    let lost = |error| {
        Error::new(
            Code::Internal,
            format!("a thread of a download ended: {error}"),
        )
    };
    thread.await.map_err(lost)
}

fn write_blocks(shared: &SharedState, file: &File, mut blocks: mpsc::Receiver<Block>) {
    let mut sound = true;
    while let Some((at, bytes)) = blocks.blocking_recv() {
        // After a failure blocks are let go, so that no connection waits for room.
        if !sound {
            continue;
        }
        match file.write_all_at(&bytes, at) {
            Ok(()) => shared.change(|state| state.written.insert(at, at + bytes.len() as u64)),
            Err(error) => {
                sound = false;
                shared.fail(full_or_broken(&error));
            }
        }
    }
    shared.change(|state| state.ended = true);
}

struct KeeperEffects<'a> {
    sync: &'a dyn Fn() -> io::Result<()>,
    store: &'a dyn Fn(&Ranges) -> io::Result<()>,
    /// Cuts the file to a length.
    give_back: &'a dyn Fn(u64) -> io::Result<()>,
    /// Whether the volume still has room for everything else.
    room: &'a dyn Fn() -> Result<(), Error>,
}

/// Syncs and journals every `every` until nothing more is written, and once more then.
///
/// The order is what a power cut tests: first it is noted what has been written, then the data is synced, then
/// the journal claims what was noted, and nothing that was written meanwhile.
fn keep_blocks(shared: &SharedState, part: &Path, every: Duration, keeping: &KeeperEffects<'_>) {
    let begun = Instant::now();
    let mut stored = None;
    loop {
        let (mut noted, whole, ended, troubled) = {
            let due = Instant::now() + every.min(begun.elapsed().max(FIRST_JOURNAL));
            let mut state = shared.state.lock();
            // The first journal is written at once: it identifies the file of these bytes.
            while stored.is_some() && !state.ended {
                if shared.changed.wait_until(&mut state, due).timed_out() {
                    break;
                }
            }
            let whole = state.total == Some(state.written.prefix());
            let troubled = state.trouble.is_some();
            (state.written.clone(), whole, state.ended, troubled)
        };
        if stored.as_ref() != Some(&noted) {
            let kept = (keeping.sync)().and_then(|()| {
                (keeping.store)(&noted).or_else(|error| {
                    if !(ended && troubled) {
                        return Err(error);
                    }
                    // A full volume has no room for the journal either.
                    noted.truncate(noted.end().saturating_sub(SPARE));
                    (keeping.give_back)(noted.end())?;
                    (keeping.sync)()?;
                    (keeping.store)(&noted)
                })
            });
            if let Err(error) = kept {
                shared.fail(full_or_broken(&error).detail("path", part.display().to_string()));
                // After a failed sync, the state of the disk is unknown; the older journal stays valid.
                break;
            }
            shared.change(|state| state.synced = noted.prefix());
            stored = Some(noted);
        }
        if ended {
            break;
        }
        // A whole file needs no more room to get its name.
        if !whole && let Err(error) = (keeping.room)() {
            shared.fail(error);
        }
    }
}

pub(super) fn full_or_broken(error: &io::Error) -> Error {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    match error.kind() {
        StorageFull | QuotaExceeded | FileTooLarge => {
            Error::new(Code::Storage, format!("the disk is full: {error}"))
                .hint("the partial file is kept; free up space, then resume the download")
        }
        _ => Error::new(
            Code::Storage,
            format!("the file cannot be written: {error}"),
        )
        .hint("check that the volume is connected and writable, then resume the download"),
    }
}

#[cfg(test)]
mod tests;

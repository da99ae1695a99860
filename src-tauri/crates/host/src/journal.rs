//! The log of why: gives what happens an id and a time, keeps it in the store, and passes it on.

use crate::{blocking::blocking, folder::Folder};
use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};
use tierbar_core::{
    Error, TierId,
    journal::{Entry, Journal, Kind, LogEvent},
};
use tierbar_gateway::Metrics;
use tierbar_store::Store;
use tokio::sync::{broadcast, mpsc, oneshot};

/// As much may happen while the disk writes; what exceeds it is counted and lost.
const WAITING: usize = 1024;
/// As many are written together, since the disk is waited for each time.
const AT_ONCE: usize = 64;
/// As far may a watcher be behind.
const BEHIND: usize = 256;
/// Characters. A sentence may quote what a worker has said.
const LONGEST: usize = 1000;

/// The last entries of the log of a data folder that no host owns now, the newest first.
///
/// # Errors
/// `Storage` if the database cannot be read.
pub async fn past_log(
    home: Option<PathBuf>,
    tier: Option<TierId>,
    limit: u32,
) -> Result<Vec<Entry>, Error> {
    let store = blocking("opening the log", move || {
        let database = Folder::open(home)?.database();
        Store::open(&database)
    });
    store.await?.entries(None, tier, limit).await
}

/// Everybody's side of the log; the store's side is a task that ends with it.
#[derive(Debug)]
pub(crate) struct Ledger {
    inbox: mpsc::Sender<Note>,
    lost: Arc<AtomicUsize>,
    watchers: broadcast::Sender<Entry>,
    metrics: Metrics,
}

#[derive(Debug)]
enum Note {
    Happened(u64, LogEvent),
    /// All before it has been dealt with.
    Flush(oneshot::Sender<()>),
}

impl Ledger {
    /// Goes on behind the last entry of the store. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// `Storage` if the store cannot be read.
    pub(crate) async fn open(store: Store, metrics: Metrics) -> Result<Self, Error> {
        let last = store.last_entry().await?;
        let (inbox, notes) = mpsc::channel(WAITING);
        let watchers = broadcast::Sender::new(BEHIND);
        let lost = Arc::new(AtomicUsize::new(0));
        let writer = Writer {
            store,
            last,
            lost: Arc::clone(&lost),
            watchers: watchers.clone(),
            failing: false,
        };
        tokio::spawn(writer.run(notes));
        Ok(Self {
            inbox,
            lost,
            watchers,
            metrics,
        })
    }

    /// Entries from now on; those before are in the store.
    pub(crate) fn watch(&self) -> broadcast::Receiver<Entry> {
        self.watchers.subscribe()
    }

    /// Returns once every event recorded so far is in the store.
    pub(crate) async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        if self.inbox.send(Note::Flush(done)).await.is_ok() {
            let _ = flushed.await;
        }
    }
}

impl Journal for Ledger {
    fn record(&self, mut event: LogEvent) {
        self.metrics.happened(&event);
        if let Some((end, _)) = event.sentence.char_indices().nth(LONGEST) {
            event.sentence.truncate(end);
            event.sentence.push('…');
        }
        if self.inbox.try_send(Note::Happened(now(), event)).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

struct Writer {
    store: Store,
    /// The last id that was given.
    last: u64,
    lost: Arc<AtomicUsize>,
    watchers: broadcast::Sender<Entry>,
    /// The last entries could not be kept, which is said once.
    failing: bool,
}

impl Writer {
    async fn run(mut self, mut notes: mpsc::Receiver<Note>) {
        let mut taken = Vec::new();
        while notes.recv_many(&mut taken, AT_ONCE).await > 0 {
            let (mut entries, mut flushed) = (Vec::new(), Vec::new());
            for note in taken.drain(..) {
                match note {
                    Note::Happened(at_ms, what) => entries.push(self.entry(at_ms, what)),
                    Note::Flush(done) => flushed.push(done),
                }
            }
            let lost = self.lost.swap(0, Ordering::Relaxed);
            if lost > 0 {
                let sentence = format!("{lost} more events happened than the log could record");
                entries.push(self.entry(now(), LogEvent::new(Kind::Note, sentence)));
            }
            self.keep(entries).await;
            for done in flushed {
                let _ = done.send(());
            }
        }
    }

    fn entry(&mut self, at_ms: u64, what: LogEvent) -> Entry {
        self.last += 1;
        let id = self.last;
        Entry { id, at_ms, what }
    }

    async fn keep(&mut self, entries: Vec<Entry>) {
        if entries.is_empty() {
            return;
        }
        match self.store.add_entries(entries.clone()).await {
            Ok(()) => self.failing = false,
            Err(error) => {
                if !self.failing {
                    tracing::warn!("the event log cannot be saved: {error}");
                }
                self.failing = true;
            }
        }
        // Only now: whoever begins to watch and then reads the store misses none.
        for entry in entries {
            let _ = self.watchers.send(entry);
        }
    }
}

/// Milliseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn store(folder: &Path) -> Store {
        Store::open(&folder.join("tierbar.db")).unwrap()
    }

    fn event(sentence: impl Into<String>) -> LogEvent {
        LogEvent::new(Kind::Alarm, sentence)
    }

    #[tokio::test]
    async fn events_continue_the_last_hosts_numbers() {
        let folder = tempfile::tempdir().unwrap();
        for expected in [1, 3] {
            let ledger = Ledger::open(store(folder.path()), Metrics::default())
                .await
                .unwrap();
            let mut watched = ledger.watch();
            ledger.record(event("one"));
            ledger.record(event("two"));
            let entry = watched.recv().await.unwrap();
            assert_eq!((entry.id, entry.what.sentence.as_str()), (expected, "one"));
            assert!(entry.at_ms > 1_700_000_000_000, "{}", entry.at_ms);
            // Whoever is told of it finds it.
            let kept = store(folder.path()).entries(None, None, 9).await.unwrap();
            assert!(kept.contains(&entry));
            ledger.flush().await;
            let kept = store(folder.path()).entries(None, None, 9).await.unwrap();
            assert_eq!(kept[0].id, expected + 1);
        }
    }

    #[tokio::test]
    async fn a_long_quote_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::open(store(folder.path()), Metrics::default())
            .await
            .unwrap();
        let mut watched = ledger.watch();
        ledger.record(event("ä".repeat(LONGEST)));
        ledger.record(event("ä".repeat(5000)));
        let whole = watched.recv().await.unwrap().what.sentence;
        assert_eq!(whole.chars().count(), LONGEST);
        let cut = watched.recv().await.unwrap().what.sentence;
        assert_eq!(cut, format!("{whole}…"));
    }

    #[tokio::test]
    async fn an_event_that_cannot_be_stored_is_still_sent() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path());
        let ledger = Ledger::open(store.clone(), Metrics::default())
            .await
            .unwrap();
        let mut watched = ledger.watch();
        // The store refuses an id that it has.
        let taken = Entry {
            id: 1,
            at_ms: 1,
            what: event("another's"),
        };
        store.add_entries(vec![taken.clone()]).await.unwrap();
        ledger.record(event("lost"));
        assert_eq!(watched.recv().await.unwrap().what.sentence, "lost");
        assert_eq!(store.entries(None, None, 9).await.unwrap(), [taken]);
        ledger.record(event("kept"));
        let kept = watched.recv().await.unwrap();
        assert_eq!(store.entries(None, None, 1).await.unwrap(), [kept]);
    }

    #[tokio::test]
    async fn events_beyond_the_write_rate_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path());
        let ledger = Ledger::open(store.clone(), Metrics::default())
            .await
            .unwrap();
        // The writer does not run before this task waits.
        for count in 0..WAITING + 3 {
            ledger.record(event(count.to_string()));
        }
        ledger.flush().await;
        let kept = store.entries(None, None, 2000).await.unwrap();
        assert_eq!(kept.len(), WAITING + 1);
        let mut notes = kept.iter().filter(|entry| entry.what.kind == Kind::Note);
        let expected = "3 more events happened than the log could record";
        assert_eq!(notes.next().unwrap().what.sentence, expected);
        assert!(notes.next().is_none());
    }
}

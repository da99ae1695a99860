//! The event log: numbers and times events, stores them, and passes them on.

use crate::folder::Folder;
use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use tierbar_core::{
    Error,
    journal::{Entry, Filter, Journal, Kind, LogEvent},
};
use tierbar_fetch::blocking;
use tierbar_inference::metrics::Metrics;
use tierbar_store::Store;
use tokio::sync::{broadcast, mpsc, oneshot};

/// The most events waiting for the disk; further ones are counted and lost.
const WAITING: usize = 1024;
/// Events written in one transaction, since each one waits for the disk.
const AT_ONCE: usize = 64;
/// How far a watcher may fall behind.
const BEHIND: usize = 256;
/// The most characters. A sentence may quote a worker's output.
const LONGEST: usize = 1000;

/// Returns the last entries of the log of a data folder that no host owns, newest first.
///
/// # Errors
/// `Storage` if the database cannot be read.
pub async fn past_log(
    home: Option<PathBuf>,
    filter: Filter,
    limit: u32,
) -> Result<Vec<Entry>, Error> {
    let store = blocking("opening the log", move || {
        let database = Folder::open(home)?.database();
        Store::open(&database)
    });
    store.await?.entries(None, filter, limit).await
}

/// The handle on the log; a task that ends with it writes to the store.
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
    /// Reports that all events before it have been handled.
    Flush(oneshot::Sender<()>),
}

impl Ledger {
    /// Continues after the last entry of the store. Must be called within a tokio runtime.
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

    /// Returns entries from now on; earlier ones are in the store.
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
    /// The last id assigned.
    last: u64,
    lost: Arc<AtomicUsize>,
    watchers: broadcast::Sender<Entry>,
    /// Whether the last entries could not be stored, which is logged once.
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
        // Only after storing: a watcher that subscribes and then reads the store misses none.
        for entry in entries {
            let _ = self.watchers.send(entry);
        }
    }
}

/// Returns the milliseconds since 1970.
pub(crate) fn now() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or_default()
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
            // An announced entry is in the store.
            let kept = store(folder.path())
                .entries(None, Filter::default(), 9)
                .await
                .unwrap();
            assert!(kept.contains(&entry));
            ledger.flush().await;
            let kept = store(folder.path())
                .entries(None, Filter::default(), 9)
                .await
                .unwrap();
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
        // The store refuses an existing id.
        let taken = Entry {
            id: 1,
            at_ms: 1,
            what: event("another's"),
        };
        store.add_entries(vec![taken.clone()]).await.unwrap();
        ledger.record(event("lost"));
        assert_eq!(watched.recv().await.unwrap().what.sentence, "lost");
        assert_eq!(
            store.entries(None, Filter::default(), 9).await.unwrap(),
            [taken]
        );
        ledger.record(event("kept"));
        let kept = watched.recv().await.unwrap();
        assert_eq!(
            store.entries(None, Filter::default(), 1).await.unwrap(),
            [kept]
        );
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
        let kept = store.entries(None, Filter::default(), 2000).await.unwrap();
        assert_eq!(kept.len(), WAITING + 1);
        let mut notes = kept.iter().filter(|entry| entry.what.kind == Kind::Note);
        let expected = "3 more events happened than the log could record";
        assert_eq!(notes.next().unwrap().what.sentence, expected);
        assert!(notes.next().is_none());
    }
}

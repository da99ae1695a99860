//! Publishes notifications with the status, for the app and open pages to show.

use crate::status::StatusBoard;
use std::sync::Arc;
use tierbar_core::{
    Config, download::DownloadStatus, journal::Entry, notification::Notifier, queue::JobState,
};
use tierbar_store::Store;
use tokio::{
    sync::{
        broadcast::{self, error::RecvError},
        watch,
    },
    time::{Duration, MissedTickBehavior, interval},
};
use tokio_util::sync::CancellationToken;

/// How often the queue is looked at, while the user wants to know when it is done.
const QUEUE_INTERVAL: Duration = Duration::from_secs(5);

pub(crate) struct Notifications {
    pub(crate) config: watch::Receiver<Arc<Config>>,
    pub(crate) events: broadcast::Receiver<Entry>,
    pub(crate) downloads: watch::Receiver<Arc<Vec<DownloadStatus>>>,
    pub(crate) store: Store,
    pub(crate) board: Arc<StatusBoard>,
}

impl Notifications {
    /// Runs until `closing`: what quitting unloads is no news.
    pub(crate) async fn run(mut self, closing: CancellationToken) {
        let mut notifier = Notifier::default();
        let mut looks = interval(QUEUE_INTERVAL);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.downloads.mark_changed();
        loop {
            let wanted = self.config.borrow_and_update().notifications;
            let new = tokio::select! {
                () = closing.cancelled() => return,
                changed = self.config.changed() => match changed {
                    Ok(()) => continue,
                    Err(_) => return,
                },
                entry = self.events.recv() => match entry {
                    Ok(entry) => Vec::from_iter(notifier.event(&entry.what, wanted)),
                    Err(RecvError::Lagged(_)) => continue,
                    Err(RecvError::Closed) => return,
                },
                changed = self.downloads.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    let downloads = Arc::clone(&self.downloads.borrow_and_update());
                    notifier.downloads(&downloads, wanted)
                }
                _ = looks.tick(), if wanted.queue => match self.store.count_jobs().await {
                    Ok((counts, _)) => {
                        let is_open = |state| matches!(state, JobState::Waiting | JobState::Running);
                        let open = counts.iter().filter(|(state, _)| is_open(*state));
                        let open: u64 = open.map(|(_, count)| count).sum();
                        Vec::from_iter(notifier.queue(open, wanted))
                    }
                    Err(_) => continue,
                },
            };
            if !new.is_empty() {
                self.board.notify(new);
            }
        }
    }
}

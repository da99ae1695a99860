//! Publishes notifications with the status, for the app and open pages to show.

use crate::live_config::LiveConfig;
use std::sync::Arc;
use tierbar_core::{journal::Entry, notification::Notifier, queue::JobState};
use tierbar_store::Store;
use tokio::{
    sync::broadcast::{Receiver, error::RecvError},
    time::{Duration, MissedTickBehavior, interval},
};
use tokio_util::sync::CancellationToken;

/// How often the queue is looked at, while the user wants to know when it is done.
const QUEUE_INTERVAL: Duration = Duration::from_secs(5);

/// Runs until `closing`: what quitting unloads is no news.
pub(crate) async fn publish_notifications(
    host: Arc<LiveConfig>,
    mut events: Receiver<Entry>,
    store: Store,
    closing: CancellationToken,
) {
    let mut notifier = Notifier::default();
    let mut looks = interval(QUEUE_INTERVAL);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut config, mut downloads) = (host.in_force.subscribe(), host.queue.watch());
    downloads.mark_changed();
    loop {
        let wanted = config.borrow_and_update().notifications;
        let new = tokio::select! {
            () = closing.cancelled() => return,
            changed = config.changed() => match changed {
                Ok(()) => continue,
                Err(_) => return,
            },
            entry = events.recv() => match entry {
                Ok(entry) => Vec::from_iter(notifier.event(&entry.what, wanted)),
                Err(RecvError::Lagged(_)) => continue,
                Err(RecvError::Closed) => return,
            },
            changed = downloads.changed() => {
                if changed.is_err() {
                    return;
                }
                let all = Arc::clone(&downloads.borrow_and_update());
                notifier.downloads(&all, wanted)
            }
            _ = looks.tick(), if wanted.queue => match store.count_jobs().await {
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
            host.board.notify(new);
        }
    }
}

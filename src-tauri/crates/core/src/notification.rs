//! What the user is notified of: a decision from events, downloads and the queue to texts.

use crate::{
    config::NotificationsConfig,
    download::{DownloadState, DownloadStatus},
    journal::{Kind, LogEvent},
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A text for the system's notifications.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Notification {
    /// Grows with each notification of a host.
    pub id: u64,
    pub title: String,
    /// One sentence, as in the event log.
    pub body: String,
}

/// Decides what to notify of, and remembers what has been before.
#[derive(Debug, Default)]
pub struct Notifier {
    last: u64,
    /// The ids of downloads that were not complete.
    under_way: BTreeSet<String>,
    /// Queued requests that had not ended; `None` if that is unknown.
    queued: Option<u64>,
}

impl Notifier {
    /// Returns what an event of the log is to notify of.
    pub fn event(&mut self, event: &LogEvent, wanted: NotificationsConfig) -> Option<Notification> {
        let (wants, title) = match event.kind {
            Kind::Alarm | Kind::StepDown => (wanted.memory, "Memory is low"),
            Kind::Unload => (wanted.unloads, "Model unloaded"),
            _ => return None,
        };
        wants.then(|| self.notify(title, event.sentence.clone()))
    }

    /// Returns what has been downloaded since the last call.
    pub fn downloads(
        &mut self,
        downloads: &[DownloadStatus],
        wanted: NotificationsConfig,
    ) -> Vec<Notification> {
        let mut new = Vec::new();
        for download in downloads {
            let was_under_way = self.under_way.remove(&download.id);
            if download.state.is_under_way() {
                self.under_way.insert(download.id.clone());
            } else if was_under_way && download.state == DownloadState::Done && wanted.downloads {
                let model = download.file.strip_suffix(".gguf");
                let model = model.unwrap_or(&download.file);
                new.push(self.notify("Download finished", format!("{model} is ready")));
            }
        }
        new
    }

    /// Returns whether the queue is done since the last call. `open`: queued requests that have not ended.
    pub fn queue(&mut self, open: u64, wanted: NotificationsConfig) -> Option<Notification> {
        let before = self.queued.replace(open).unwrap_or(0);
        let body = "all queued requests have ended";
        (before > 0 && open == 0 && wanted.queue)
            .then(|| self.notify("Queue finished", body.to_owned()))
    }

    fn notify(&mut self, title: &str, body: String) -> Notification {
        self.last += 1;
        Notification {
            id: self.last,
            title: title.to_owned(),
            body,
        }
    }
}

/// What of the published notifications has been shown. Those before the first look were there before.
#[derive(Debug, Default)]
pub struct ShownNotifications {
    last: Option<u64>,
}

impl ShownNotifications {
    /// Returns what is to be shown now. A host that has restarted counts anew.
    pub fn next<'a>(&mut self, published: &'a [Notification]) -> &'a [Notification] {
        let newest = published.last().map_or(0, |newest| newest.id);
        match self.last.replace(newest) {
            Some(last) if newest >= last => {
                let shown = published.partition_point(|known| known.id <= last);
                &published[shown..]
            }
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::download::Priority;

    const ALL: NotificationsConfig = NotificationsConfig {
        downloads: true,
        queue: true,
        memory: true,
        unloads: true,
    };

    fn download(state: DownloadState) -> [DownloadStatus; 1] {
        [DownloadStatus {
            id: "d1".to_owned(),
            reference: "o/gemma:Q4_K_M".to_owned(),
            file: "gemma-Q4_K_M.gguf".to_owned(),
            files: Vec::new(),
            state,
            priority: Priority::default(),
            received_bytes: 0,
            total_bytes: None,
            bytes_per_second: 0,
            eta_seconds: None,
            reason: None,
            warnings: Vec::new(),
        }]
    }

    #[test]
    fn nothing_is_notified_that_the_user_does_not_want() {
        let (mut notifier, none) = (Notifier::default(), NotificationsConfig::default());
        let event = LogEvent::new(Kind::Alarm, "memory is low");
        assert_eq!(notifier.event(&event, none), None);
        notifier.downloads(&download(DownloadState::Downloading), none);
        let done = notifier.downloads(&download(DownloadState::Done), none);
        assert_eq!(done, []);
        notifier.queue(3, none);
        assert_eq!(notifier.queue(0, none), None);
    }

    #[test]
    fn acts_of_the_guard_and_unloads_are_in_the_words_of_the_log() {
        let mut notifier = Notifier::default();
        let mut body = |kind| {
            let event = LogEvent::new(kind, "as logged");
            let notification = notifier.event(&event, ALL)?;
            Some((notification.id, notification.title, notification.body))
        };
        let expected = |id, title: &str| Some((id, title.to_owned(), "as logged".to_owned()));
        assert_eq!(body(Kind::Alarm), expected(1, "Memory is low"));
        assert_eq!(body(Kind::Load), None);
        assert_eq!(body(Kind::Unload), expected(2, "Model unloaded"));
    }

    #[test]
    fn a_download_is_notified_once_if_it_was_under_way() {
        let mut notifier = Notifier::default();
        assert_eq!(notifier.downloads(&download(DownloadState::Done), ALL), []);
        notifier.downloads(&download(DownloadState::Verifying), ALL);
        let new = notifier.downloads(&download(DownloadState::Done), ALL);
        assert_eq!(new.len(), 1);
        assert_eq!(new[0].body, "gemma-Q4_K_M is ready");
        assert_eq!(notifier.downloads(&download(DownloadState::Done), ALL), []);
        notifier.downloads(&download(DownloadState::Downloading), ALL);
        let failed = notifier.downloads(&download(DownloadState::Failed), ALL);
        assert_eq!(failed, []);
    }

    #[test]
    fn each_notification_is_shown_once_and_none_from_before() {
        let mut seen = ShownNotifications::default();
        let mut ids = |ids: &[u64]| -> Vec<u64> {
            let published: Vec<_> = ids
                .iter()
                .map(|&id| Notification {
                    id,
                    title: String::new(),
                    body: String::new(),
                })
                .collect();
            seen.next(&published).iter().map(|new| new.id).collect()
        };
        assert_eq!(ids(&[7, 8]), [0; 0]);
        assert_eq!(ids(&[7, 8, 9]), [9]);
        assert_eq!(ids(&[]), [0; 0]);
        assert_eq!(ids(&[1]), [1]);
    }

    #[test]
    fn the_queue_is_notified_when_its_last_request_has_ended() {
        let mut notifier = Notifier::default();
        assert_eq!(notifier.queue(0, ALL), None);
        assert_eq!(notifier.queue(2, ALL), None);
        assert_eq!(notifier.queue(1, ALL), None);
        assert!(notifier.queue(0, ALL).is_some());
        assert_eq!(notifier.queue(0, ALL), None);
    }
}

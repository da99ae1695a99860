//! Server-sent events: a snapshot of the status, then its fields that changed, what happens to the tiers, and that chats changed.

use serde_json::{Map, Value, json};
use std::sync::Arc;
use tierbar_core::{journal::Entry, status::Status};
use tokio::sync::{broadcast, watch};

/// One watcher's place in the stream.
pub(crate) struct Changes {
    status: watch::Receiver<Arc<Status>>,
    log: broadcast::Receiver<Entry>,
    /// The number of changes of the chats.
    chats: watch::Receiver<u64>,
    rendered: Option<Map<String, Value>>,
}

impl Changes {
    pub(crate) fn new(
        status: watch::Receiver<Arc<Status>>,
        log: broadcast::Receiver<Entry>,
        chats: watch::Receiver<u64>,
    ) -> Self {
        Self {
            status,
            log,
            chats,
            rendered: None,
        }
    }

    /// The next event's name and data; `None` once the host has ended, or when this watcher was so slow that it has missed
    /// entries: it begins anew.
    pub(crate) async fn next(&mut self) -> Option<(&'static str, Value)> {
        loop {
            if self.rendered.is_some() {
                tokio::select! {
                    changed = self.status.changed() => changed.ok()?,
                    entry = self.log.recv() => return Some(("log", json!(entry.ok()?))),
                    changed = self.chats.changed() => {
                        changed.ok()?;
                        let revision = *self.chats.borrow_and_update();
                        return Some(("chats", json!({"revision": revision})));
                    }
                }
            }
            let Ok(Value::Object(now)) = serde_json::to_value(&**self.status.borrow_and_update())
            else {
                return None;
            };
            let Some(before) = self.rendered.replace(now.clone()) else {
                return Some(("snapshot", Value::Object(now)));
            };
            let changed: Map<String, Value> = now
                .into_iter()
                .filter(|(key, value)| before.get(key) != Some(value))
                .collect();
            if !changed.is_empty() {
                return Some(("change", json!(changed)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::status;
    use tierbar_core::journal::{Kind, LogEvent};

    #[tokio::test]
    async fn a_change_carries_only_the_fields_that_differ() {
        let (sender, receiver) = watch::channel(Arc::new(status()));
        let (_log, entries) = broadcast::channel(1);
        let (_chats, revisions) = watch::channel(0);
        let mut changes = Changes::new(receiver, entries, revisions);
        let (name, snapshot) = changes.next().await.unwrap();
        assert_eq!(
            (name, &snapshot["url"]),
            ("snapshot", &json!("http://127.0.0.1:1"))
        );

        let mut other = status();
        other.swap.used_bytes = 7;
        sender.send(Arc::new(status())).unwrap();
        sender.send(Arc::new(other)).unwrap();
        let (name, change) = changes.next().await.unwrap();
        assert_eq!(name, "change");
        assert_eq!(
            change,
            json!({"swap": {"used_bytes": 7, "growth_bytes_per_minute": 0}})
        );

        drop(sender);
        assert!(changes.next().await.is_none());
    }

    #[tokio::test]
    async fn log_entries_follow_the_snapshot_until_some_are_missed() {
        let (_sender, receiver) = watch::channel(Arc::new(status()));
        let (log, entries) = broadcast::channel(2);
        let (_chats, revisions) = watch::channel(0);
        let mut changes = Changes::new(receiver, entries, revisions);
        let entry = |id| Entry {
            id,
            at_ms: 9,
            what: LogEvent::new(Kind::Alarm, "memory is low"),
        };
        log.send(entry(1)).unwrap();
        assert_eq!(changes.next().await.unwrap().0, "snapshot");
        let reply = json!({"id": 1, "at_ms": 9, "kind": "alarm", "tier": null, "model": null, "sentence": "memory is low"});
        assert_eq!(changes.next().await.unwrap(), ("log", reply));
        for id in 2..=4 {
            log.send(entry(id)).unwrap();
        }
        assert!(changes.next().await.is_none());
    }

    #[tokio::test]
    async fn changes_of_the_chats_follow_the_snapshot() {
        let (_sender, receiver) = watch::channel(Arc::new(status()));
        let (_log, entries) = broadcast::channel(1);
        let (chats, revisions) = watch::channel(4);
        let mut changes = Changes::new(receiver, entries, revisions);
        assert_eq!(changes.next().await.unwrap().0, "snapshot");
        // Two changes at once are one event.
        chats.send(5).unwrap();
        chats.send(6).unwrap();
        let event = ("chats", json!({"revision": 6}));
        assert_eq!(changes.next().await.unwrap(), event);
        drop(chats);
        assert!(changes.next().await.is_none());
    }
}

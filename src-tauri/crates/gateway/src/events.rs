//! Server-sent events of the status: a snapshot, then the fields that changed.

use serde_json::{Map, Value, json};
use std::sync::Arc;
use tierbar_core::status::Status;
use tokio::sync::watch;

/// One watcher's place in the stream.
pub(crate) struct Changes {
    status: watch::Receiver<Arc<Status>>,
    told: Option<Map<String, Value>>,
}

impl Changes {
    pub(crate) fn new(status: watch::Receiver<Arc<Status>>) -> Self {
        Self { status, told: None }
    }

    /// The next event's name and data; `None` once the host has ended.
    pub(crate) async fn next(&mut self) -> Option<(&'static str, Value)> {
        loop {
            if self.told.is_some() {
                self.status.changed().await.ok()?;
            }
            let Ok(Value::Object(now)) = serde_json::to_value(&**self.status.borrow_and_update())
            else {
                return None;
            };
            let Some(before) = self.told.replace(now.clone()) else {
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

    #[tokio::test]
    async fn a_change_carries_only_the_fields_that_differ() {
        let (sender, receiver) = watch::channel(Arc::new(status()));
        let mut changes = Changes::new(receiver);
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
}

//! What the host and the machine do: the status, once and as a stream of changes, past readings, experts in memory, and metrics.

use crate::admin::AdminState;
use axum::{
    Json,
    extract::State,
    http::header,
    response::{IntoResponse, Response, sse::Event},
};
use futures_util::{StreamExt, stream};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tierbar_core::{history::History, journal::Entry, paging::PagingStatus, status::Status};
use tierbar_http::{
    Answer,
    error::Failure,
    request::{QueryFields, check_range},
    sse::{self, json_event},
};
use tierbar_inference::metrics::CONTENT_TYPE;
use tokio::sync::{broadcast, watch};

/// Returns the status: tiers, memory, downloads and what Tierbar does.
#[utoipa::path(
    get,
    path = "/tierbar/v1/status",
    reach(Owner, Reads),
    responses((status = 200, description = "The status", body = Status)),
)]
pub(crate) async fn status(State(admin): AdminState) -> Json<Status> {
    Json(Status::clone(&admin.services.status()))
}

/// Streams the status, then each change of it, the events of tiers, and that chats changed.
#[utoipa::path(
    get,
    path = "/tierbar/v1/events",
    reach(Owner, Reads),
    responses((status = 200, description = "Server-sent events: `snapshot`, then `change`, `log` and `chats`", content(("text/event-stream")))),
)]
pub(crate) async fn events(State(admin): AdminState) -> Response {
    let changes = Changes {
        status: admin.services.watch(),
        log: admin.services.log(),
        chats: admin.jobs.watch_chats(),
        rendered: None,
    };
    let events = stream::unfold(changes, |mut changes| async {
        let (name, data) = changes.next().await?;
        Some((json_event(Event::default().event(name), &data), changes))
    });
    let closing = admin.inference.closing.clone().cancelled_owned();
    sse::response(events.take_until(closing))
}

/// One watcher's place in the stream.
struct Changes {
    status: watch::Receiver<Arc<Status>>,
    log: broadcast::Receiver<Entry>,
    /// The number of changes of the chats.
    chats: watch::Receiver<u64>,
    /// The status as the watcher knows it.
    rendered: Option<Map<String, Value>>,
}

impl Changes {
    /// The next event's name and data; `None` once the host has ended, or when this watcher was so slow that it has missed
    /// entries: it begins anew.
    async fn next(&mut self) -> Option<(&'static str, Value)> {
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

/// As much as is kept: 30 days.
const MOST_MINUTES: u64 = 30 * 24 * 60;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct HistoryQuery {
    #[serde(default = "default_minutes")]
    minutes: u64,
    /// Leaves out points that start before it, in seconds since 1970: those that are known already.
    #[serde(default)]
    since: u64,
}

fn default_minutes() -> u64 {
    10
}

/// Returns past readings of the machine.
#[utoipa::path(
    get,
    path = "/tierbar/v1/history",
    reach(Owner, Reads),
    params(HistoryQuery),
    responses((status = 200, description = "The readings", body = History)),
)]
pub(crate) async fn history(
    State(admin): AdminState,
    QueryFields(HistoryQuery { minutes, since }): QueryFields<HistoryQuery>,
) -> Answer<History> {
    check_range("minutes", minutes, 1..=MOST_MINUTES)?;
    let mut history = admin.services.history(minutes).await?;
    history.points.retain(|point| point.at >= since);
    Ok(Json(history))
}

/// Returns which experts of the loaded models are in memory, and what the disks read and write.
#[utoipa::path(
    get,
    path = "/tierbar/v1/paging",
    reach(Owner, Reads),
    responses((status = 200, description = "The experts and the disks", body = PagingStatus)),
)]
pub(crate) async fn paging(State(admin): AdminState) -> Answer<PagingStatus> {
    Ok(Json(admin.services.paging().await))
}

/// Returns counters, histograms and memory: docs/metrics.md.
#[utoipa::path(
    get,
    path = "/metrics",
    reach(Inference, Reads),
    responses((status = 200, description = "OpenMetrics text", body = String, content_type = "application/openmetrics-text")),
)]
pub(crate) async fn metrics(State(admin): AdminState) -> Result<impl IntoResponse, Failure> {
    let (jobs, bytes) = admin.store.count_jobs().await?;
    let (status, chains) = (admin.services.status(), admin.inference.chain_status());
    let metrics = &admin.inference.metrics;
    let text = metrics.render(&status, &chains, &jobs, bytes)?;
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], text))
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
        let mut changes = Changes {
            status: receiver,
            log: entries,
            chats: revisions,
            rendered: None,
        };
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
        let mut changes = Changes {
            status: receiver,
            log: entries,
            chats: revisions,
            rendered: None,
        };
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
        let mut changes = Changes {
            status: receiver,
            log: entries,
            chats: revisions,
            rendered: None,
        };
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

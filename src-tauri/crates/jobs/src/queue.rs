//! The queue: requests that are answered later. Each is stored before its client gets `202`; its answer is fetched, followed by events or
//! sent to a webhook.
//!
//! What is kept is the HTTP request as it came, which the runner sends through the routes of inference again: so the queue knows
//! nothing of dialects. What became of one is recorded by the store, once.

mod api;
mod keep;
mod options;
mod render;
mod run;
mod schema;
mod setback;
mod webhook;

pub use keep::keep;
pub use render::status_json;
pub use run::QueueRunner;
pub use webhook::secret;

use super::Jobs;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use parking_lot::Mutex;
use std::{collections::HashMap, sync::Arc, time::Duration};
use tierbar_core::config::QueueConfig;
use tierbar_edge::now_ms;
use tierbar_http::{mount::Routes, routes};
use tierbar_store::Room;
use tokio::sync::{Notify, broadcast};
use tokio_util::sync::CancellationToken;

/// As many requests may wait.
const MOST_LIVE: u64 = 10_000;
/// Of them those of one API key: so none takes all the places.
const OF_ONE_KEY: u64 = MOST_LIVE / 4;
/// So many changes may a watcher be late; then it looks anew.
const CHANGES: usize = 256;

/// What storing, running and reporting jobs share.
#[derive(Debug)]
pub struct JobQueue {
    /// An attempt, or something else that is the runner's, may be due.
    work: Notify,
    /// A webhook may be due.
    endings: Notify,
    /// The ids of those that have changed.
    changed: broadcast::Sender<Arc<str>>,
    /// What runs, to be broken off.
    running: Mutex<HashMap<String, CancellationToken>>,
    /// Held while the webhooks' secret is made.
    secret: tokio::sync::Mutex<()>,
}

impl Default for JobQueue {
    fn default() -> Self {
        Self {
            work: Notify::new(),
            endings: Notify::new(),
            changed: broadcast::Sender::new(CHANGES),
            running: Mutex::default(),
            secret: tokio::sync::Mutex::default(),
        }
    }
}

impl JobQueue {
    /// Notifies watchers and the runner of a change.
    fn changed(&self, id: &str) {
        // There may be no watcher.
        let _ = self.changed.send(id.into());
        self.work.notify_one();
        self.endings.notify_one();
    }

    fn break_off(&self, id: &str) {
        if let Some(attempt) = self.running.lock().get(id) {
            attempt.cancel();
        }
    }

    /// An attempt begins, and ends with what this returns.
    fn begins<'a>(&'a self, id: &'a str) -> RunningJob<'a> {
        let broken_off = CancellationToken::new();
        let mut running = self.running.lock();
        running.insert(id.to_owned(), broken_off.clone());
        RunningJob {
            queue: self,
            id,
            broken_off,
        }
    }
}

/// Listed among what runs for as long as it lives.
struct RunningJob<'a> {
    queue: &'a JobQueue,
    id: &'a str,
    broken_off: CancellationToken,
}

impl Drop for RunningJob<'_> {
    fn drop(&mut self) {
        self.queue.running.lock().remove(self.id);
    }
}

/// A request is open to the API key that it came with, and to the owner.
pub fn routes() -> Routes<Arc<Jobs>> {
    Routes::default()
        .routes(routes!(api::one, api::cancel))
        .routes(routes!(api::result))
        .routes(routes!(api::events))
}

fn room(config: &QueueConfig) -> Room {
    Room {
        live: MOST_LIVE,
        of_one_key: OF_ONE_KEY,
        bytes: config.bytes.0,
    }
}

/// How often the clock is read while something is due later: it may be set, and the machine may sleep.
const LOOK: Duration = Duration::from_secs(60);

/// How long to wait for a moment, in milliseconds since 1970, before the clock is read again.
fn wait_until(at_ms: u64) -> Duration {
    Duration::from_millis(at_ms.saturating_sub(now_ms())).min(LOOK)
}

/// The chosen headers as the store keeps them.
fn kept_headers(headers: &HeaderMap, is_kept: impl Fn(&str) -> bool) -> Vec<(String, String)> {
    let chosen = headers.iter().filter(|(name, _)| is_kept(name.as_str()));
    chosen
        .filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())))
        .collect()
}

/// The headers that [`kept_headers`] returned.
fn header_map(headers: &[(String, String)]) -> HeaderMap {
    let header = |(name, value): &(String, String)| {
        let name = HeaderName::try_from(name).ok()?;
        Some((name, HeaderValue::try_from(value).ok()?))
    };
    headers.iter().filter_map(header).collect()
}

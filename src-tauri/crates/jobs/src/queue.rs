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
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};
use tierbar_core::config::QueueConfig;
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

/// What storing, running and reporting jobs share. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct JobQueue(Arc<Shared>);

#[derive(Debug)]
struct Shared {
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

impl Default for Shared {
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
        let _ = self.0.changed.send(id.into());
        self.0.work.notify_one();
        self.0.endings.notify_one();
    }

    /// Breaks its attempt off, if one runs.
    fn break_off(&self, id: &str) {
        let running = self.0.running.lock();
        if let Some(attempt) = running.unwrap_or_else(PoisonError::into_inner).get(id) {
            attempt.cancel();
        }
    }

    /// An attempt begins, and ends with what this returns.
    fn begins(&self, id: &str) -> RunningJob {
        let broken_off = CancellationToken::new();
        let running = self.0.running.lock();
        let mut running = running.unwrap_or_else(PoisonError::into_inner);
        running.insert(id.to_owned(), broken_off.clone());
        RunningJob {
            queue: self.clone(),
            id: id.to_owned(),
            broken_off,
        }
    }
}

/// Listed among what runs for as long as it lives.
struct RunningJob {
    queue: JobQueue,
    id: String,
    broken_off: CancellationToken,
}

impl Drop for RunningJob {
    fn drop(&mut self) {
        let running = self.queue.0.running.lock();
        let mut running = running.unwrap_or_else(PoisonError::into_inner);
        running.remove(&self.id);
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

/// Milliseconds since 1970.
fn now_ms() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or_default()
}

fn millis(length: std::time::Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

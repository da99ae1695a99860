//! The server of a running host, and its shutdown.

use crate::{journal::Ledger, ownership::Ownership};
use std::{sync::Arc, time::Duration};
use tierbar_edge::{keys::Keys, token::Token};
use tierbar_fetch::Queue;
use tierbar_inference::metrics::Metrics;
use tierbar_store::Store;
use tierbar_supervisor::Handle;
use tokio::{sync::Mutex, task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;

/// How long running answers may go on after the host was asked to end.
const DRAINING: Duration = Duration::from_secs(3);
/// How long the connections may take to close once no worker is left to answer on them.
const CLOSING: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) fingerprint: Option<String>,
    pub(crate) token: Token,
    pub(super) keys: Arc<Keys>,
    pub(super) metrics: Metrics,
    pub(super) store: Store,
    pub(super) closing: CancellationToken,
    pub(super) running: Mutex<Option<(Ownership, JoinHandle<()>)>>,
}

impl Server {
    pub(crate) async fn shutdown(&self, queue: &Queue, supervisor: &Handle, journal: &Ledger) {
        let mut running = self.running.lock().await;
        let Some((ownership, mut served)) = running.take() else {
            return;
        };
        self.closing.cancel();
        // First, so that no more arrives than the stored list contains.
        queue.shutdown().await;
        let drained = timeout(DRAINING, &mut served).await.is_ok();
        // Answers that still stream end with an event that says so.
        supervisor.shutdown().await;
        journal.flush().await;
        if !drained && timeout(CLOSING, &mut served).await.is_err() {
            served.abort();
        }
        self.keys.save().await;
        self.metrics.save_ledger(&self.store).await;
        if let Err(error) = self.store.settle().await {
            tracing::warn!("what was written last stays in the log beside the database: {error}");
        }
        drop(ownership);
    }
}

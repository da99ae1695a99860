//! What is in memory of the models that are larger than it, as their workers report it.

use crate::status::StatusBoard;
use axum::body::{Body, to_bytes};
use futures_util::future::join_all;
use hyper::{Request, client::conn::http1, header};
use hyper_util::rt::TokioIo;
use std::{error::Error, path::Path, sync::Arc, time::Duration};
use tierbar_core::paging::{PagingStatus, Residency, TierPaging};
use tierbar_supervisor::{Handle, PagedWorker};
use tokio::{net::UnixStream, time::timeout};

/// A worker that is busy answers at once; one that takes longer is short of memory or hangs.
const DEADLINE: Duration = Duration::from_secs(2);
/// A letter for each expert is far less.
const MOST_BYTES: usize = 4 << 20;

#[derive(Debug)]
pub(crate) struct PagingBoard {
    pub(crate) supervisor: Handle,
    pub(crate) board: Arc<StatusBoard>,
}

impl PagingBoard {
    /// Returns the figures of the workers that answer in time.
    pub(crate) async fn read(&self) -> PagingStatus {
        let workers = self.supervisor.paged().await;
        let tiers = join_all(workers.into_iter().map(read_worker)).await;
        PagingStatus {
            tiers: tiers.into_iter().flatten().collect(),
            disk: self.board.disk_traffic(),
        }
    }
}

/// Without a lease: to be looked at is no use, and must not keep a tier loaded.
async fn read_worker(worker: PagedWorker) -> Option<TierPaging> {
    let found = match timeout(DEADLINE, residency(&worker.socket)).await {
        Ok(Ok(found)) => found?,
        Ok(Err(error)) => {
            tracing::debug!(tier = %worker.tier, %error, "a worker does not report its experts");
            return None;
        }
        Err(_) => {
            tracing::debug!(tier = %worker.tier, "a worker reports its experts too late");
            return None;
        }
    };
    Some(TierPaging::of(
        worker.tier,
        worker.model,
        worker.placement,
        found,
    ))
}

/// Asks a worker which of its experts are in memory.
async fn residency(socket: &Path) -> Result<Option<Residency>, Box<dyn Error + Send + Sync>> {
    let stream = TokioIo::new(UnixStream::connect(socket).await?);
    let (mut requests, connection) = http1::handshake(stream).await?;
    // It ends with its one answer.
    tokio::spawn(connection);
    let request = Request::get("/experts").header(header::HOST, "worker");
    let answer = requests.send_request(request.body(Body::empty())?).await?;
    if !answer.status().is_success() {
        return Err(answer.status().to_string().into());
    }
    let body = to_bytes(Body::new(answer.into_body()), MOST_BYTES).await?;
    Ok(serde_json::from_slice(&body)?)
}

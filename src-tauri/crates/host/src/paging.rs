//! What is in memory of the models that are larger than it, as their workers report it.

use crate::live_config::LiveConfig;
use axum::body::{Body, to_bytes};
use futures_util::future::join_all;
use hyper::{Request, client::conn::http1, header};
use hyper_util::rt::TokioIo;
use std::{error::Error, path::Path, time::Duration};
use tierbar_core::paging::{PagingStatus, Residency, TierPaging};
use tierbar_supervisor::PagedWorker;
use tokio::{net::UnixStream, time::timeout};

/// A worker that is busy answers at once; one that takes longer is short of memory or hangs.
const DEADLINE: Duration = Duration::from_secs(2);
/// A letter for each expert is far less.
const MOST_BYTES: usize = 4 << 20;

/// Returns the figures of the workers that answer in time.
pub(crate) async fn read(host: &LiveConfig) -> PagingStatus {
    let workers = host.supervisor.paged().await;
    let tiers = join_all(workers.into_iter().map(read_worker)).await;
    PagingStatus {
        tiers: tiers.into_iter().flatten().collect(),
        disk: host.board.disk_traffic(),
    }
}

/// Without a lease: to be looked at is no use, and must not keep a tier loaded.
async fn read_worker(worker: PagedWorker) -> Option<TierPaging> {
    let answer = timeout(DEADLINE, residency(&worker.socket)).await;
    let found = answer.unwrap_or_else(|late| Err(late.into()));
    let found = found.inspect_err(|error| {
        tracing::debug!(tier = %worker.tier, %error, "a worker does not report its experts");
    });
    let (tier, model) = (worker.tier, worker.model);
    Some(TierPaging::new(tier, model, worker.placement, found.ok()??))
}

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

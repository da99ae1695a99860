//! Frees memory that a loaded worker can spare.

use super::socket::send_request;
use std::{path::Path, time::Duration};
use tokio::time::timeout;

/// A worker answers between two evaluations.
const DEADLINE: Duration = Duration::from_secs(10);

/// Asks the worker to drop what it keeps only for later. A retry would not help.
pub(crate) async fn trim(socket: &Path) {
    match timeout(DEADLINE, send_request(socket, "POST /trim")).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a worker freed no memory"),
        Err(_) => tracing::debug!("a worker did not answer a request to free memory"),
    }
}

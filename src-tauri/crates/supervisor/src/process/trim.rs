//! A loaded worker gives back what it can do without, and goes on.

use super::socket::request;
use std::{path::Path, time::Duration};
use tokio::time::timeout;

/// It answers between two evaluations.
const DEADLINE: Duration = Duration::from_secs(10);

/// Has it drop what it keeps for later alone. One that does not is not helped by being asked again.
pub(crate) async fn trim(socket: &Path) {
    match timeout(DEADLINE, request(socket, "POST /trim")).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a worker gave nothing back"),
        Err(_) => tracing::debug!("a worker was asked to give memory back and did not answer"),
    }
}

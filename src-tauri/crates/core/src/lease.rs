//! The seam between those who need a model and the one who owns the processes.

use crate::{Error, ModelId, TierId, status::TierStatus};
use std::{future::Future, path::PathBuf, pin::Pin};

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Where a loaded tier answers the OpenAI dialect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// Our worker: HTTP over a Unix socket.
    Unix(PathBuf),
    Foreign(Foreign),
}

/// A server that is not ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    pub at: Address,
    /// The name that it knows its model by; `None`: it is asked for none.
    pub model: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A command's, over a Unix socket.
    Unix(PathBuf),
    /// A command's, on 127.0.0.1.
    Port(u16),
    /// What runs anyway: an `http` or `https` URL, to which `/v1/…` is added.
    Url(String),
}

/// The right to use a loaded tier. While it is held the tier is not unloaded, short of force; dropping it
/// releases the tier.
pub trait Lease: Send + Sync + std::fmt::Debug {
    fn tier(&self) -> &TierId;
    fn model(&self) -> &ModelId;
    fn endpoint(&self) -> &Endpoint;
    /// Resolves when the tier's worker has ended, with the reason that its owner saw; pends while it lives.
    fn ended(&self) -> BoxFuture<'_, Error>;
}

/// The tiers, as seen by the gateway and the shell. Owned by the supervisor.
pub trait Tiers: Send + Sync + std::fmt::Debug {
    /// Waits until the tier is loaded and grants a lease on it. Loads it if need be, and ends others that the
    /// budget does not hold beside it.
    ///
    /// Cancel-safe: dropping the future leaves the queue, and a request that has left never causes a load.
    fn lease(&self, tier: &TierId) -> BoxFuture<'_, Result<Box<dyn Lease>, Error>>;

    /// Loads the tier and returns once it is ready, or with the reason why not.
    fn start(&self, tier: &TierId) -> BoxFuture<'_, Result<(), Error>>;

    /// Ends the tier's process and returns once it is gone. Waits for leases first, unless `force`.
    fn stop(&self, tier: &TierId, force: bool) -> BoxFuture<'_, Result<(), Error>>;

    /// The tiers as they are now, in reading order. Advisory: never decide a mutation by it.
    fn snapshot(&self) -> Vec<TierStatus>;
}

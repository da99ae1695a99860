//! Outbound HTTP: a web client with rules for redirects and tokens, a download queue that turns URLs into verified files, and
//! stores of objects. It knows nothing of models.

mod loopback;
mod objects;
mod platform;
mod queue;
mod remote;
mod transfer;
mod web;

pub use loopback::{client, loopback};
pub use objects::{BucketOptions, Object, Objects};
pub use queue::{Job, OnComplete, Queue, QueueOptions};
pub use remote::{Remote, RemoteAnswer};
pub use transfer::{
    FetchedFile, FileSpec, Phase, Progress, RateLimit, Terms, TokenFor, discard, sha256_of,
    transfer,
};
pub use url::Url;
pub use web::{Answer, ByteRange, ContentRange, Get, Web, WebOptions, display_url, root_cause};

use tierbar_core::{Code, Error};

/// Runs what waits for a disk on a thread of its own.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|ended| Err(Error::new(Code::Internal, ended.to_string())))
}

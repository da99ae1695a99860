//! Outbound HTTP: a web client with rules for redirects and tokens, a download queue that turns URLs into verified files, and
//! stores of objects; and work beside the tasks that serve requests. It knows nothing of models.

mod blocking;
mod loopback;
mod objects;
mod platform;
mod queue;
mod remote;
mod transfer;
mod web;

pub use blocking::{blocking, detached};
pub use loopback::{client, loopback};
pub use objects::{BucketOptions, Object, Objects};
pub use queue::{Job, OnComplete, Queue, QueueOptions};
pub use remote::{Remote, RemoteAnswer, RemoteFailure, is_near};
pub use transfer::{
    FetchedFile, FileSpec, Phase, Progress, RateLimit, Terms, TokenFor, discard, sha256_of,
    transfer,
};
pub use url::Url;
pub use web::{Answer, ByteRange, ContentRange, Get, Web, WebOptions, display_url, root_cause};

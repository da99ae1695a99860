//! The download queue. One task owns the list; everyone else holds a [`Queue`].
//!
//! A download is a [`Job`]: the files of one model, fetched one after the other. What the user decided survives the
//! program: the list is kept in a file that only the user can read, and whatever was under way goes on at the next start.
//! The bytes themselves, and how far they have come, are the transfer's.

mod commands;
mod entry;
mod meter;
mod order;
mod owner;
mod run;
mod saved;
mod secret;
#[cfg(test)]
mod tests;

use crate::{FileSpec, RateLimit, TokenFor, Web, transfer::Fetched};
use commands::Command;
use futures_util::future::BoxFuture;
use owner::Owner;
use serde::{Deserialize, Serialize};
use std::{fmt, path::PathBuf, sync::Arc};
use tierbar_core::{
    Code, Error,
    download::{DownloadStatus, Priority},
};
use tokio::sync::{mpsc, oneshot, watch};

/// One model to fetch.
#[derive(Clone, Serialize, Deserialize)]
pub struct Job {
    /// What was asked for. It is shown and logged: no secrets.
    pub reference: String,
    /// Fetched in this order. The first one names the download.
    pub files: Vec<FileSpec>,
    pub priority: Priority,
    /// What the user should know about it, in plain sentences.
    pub warnings: Vec<String>,
}

/// Without the URLs, which may hold secrets.
impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("reference", &self.reference)
            .field("files", &self.files.len())
            .field("priority", &self.priority)
            .finish_non_exhaustive()
    }
}

/// Called with a job and what was fetched of it, file by file, before the download is done. Its error is the
/// download's; another try calls it again and fetches nothing twice.
pub type Landed =
    Arc<dyn Fn(&Job, &[Fetched]) -> BoxFuture<'static, Result<(), Error>> + Send + Sync>;

pub struct QueueOptions {
    /// Where the list is kept. Its folder exists.
    pub state_file: PathBuf,
    pub web: Web,
    pub tokens: TokenFor,
    /// Downloads that run at the same time, but for those whose servers let them wait for long; see
    /// [`tierbar_core::config::DownloadsConfig::AT_ONCE`].
    pub at_once: u8,
    /// Bytes per second for all of them together; 0: no limit.
    pub rate_limit: u64,
    pub landed: Landed,
}

impl fmt::Debug for QueueOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueOptions")
            .field("state_file", &self.state_file)
            .field("at_once", &self.at_once)
            .field("rate_limit", &self.rate_limit)
            .finish_non_exhaustive()
    }
}

/// The downloads, to everyone who is not their owner. When the last clone is dropped, it is as after
/// [`Queue::shutdown`]. Whoever gets an answer finds the list at least as new as the answer, on the disk too.
#[derive(Clone)]
pub struct Queue {
    commands: mpsc::UnboundedSender<Command>,
    seen: watch::Receiver<Arc<Vec<DownloadStatus>>>,
    notices: watch::Receiver<Vec<String>>,
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").finish_non_exhaustive()
    }
}

impl Queue {
    /// Reads the list and goes on with what was under way. Must be called within a tokio runtime.
    ///
    /// A list that cannot be read is kept aside as `….bad` and told by [`Queue::notices`].
    #[must_use]
    pub fn start(options: QueueOptions) -> Self {
        let QueueOptions {
            state_file,
            web,
            tokens,
            at_once,
            rate_limit,
            landed,
        } = options;
        let rate = RateLimit::new(owner::limit(rate_limit));
        let shared = rate.clone();
        let transfer: run::Transfer = Arc::new(move |work| {
            let (web, tokens, rate) = (web.clone(), tokens.clone(), shared.clone());
            Box::pin(async move {
                crate::transfer::transfer(
                    &web,
                    &work.spec,
                    &tokens,
                    &rate,
                    work.progress,
                    work.cancel,
                )
                .await
            })
        });
        Owner::start(state_file, run::Effects { transfer, landed }, at_once, rate)
    }

    /// Adds a download; `true` if it is a new one.
    ///
    /// The same reference, or the same files, on their way: that one is returned, with the higher of the two
    /// priorities, and goes on if it was paused. A failed or finished download of the reference makes way for the new
    /// one, which goes on from what has arrived.
    ///
    /// # Errors
    /// [`Code::BadRequest`] for a job without files, or whose file has the name of another download's, on a volume
    /// that may not tell `A` from `a`; [`Code::Overloaded`]; [`Code::ShuttingDown`].
    pub async fn add(&self, job: Job) -> Result<(DownloadStatus, bool), Error> {
        self.ask(|reply| Command::Add { job, reply }).await
    }

    /// Stops it until [`Queue::resume`], over restarts too. What has arrived is kept.
    ///
    /// # Errors
    /// [`Code::NotFound`]; [`Code::BadRequest`] if it is done or has failed; [`Code::ShuttingDown`].
    pub async fn pause(&self, id: &str) -> Result<DownloadStatus, Error> {
        let id = id.to_owned();
        self.ask(|reply| Command::Pause { id, reply }).await
    }

    /// Lets a paused one go on, a failed one try again, and one that waits try at once.
    ///
    /// # Errors
    /// [`Code::NotFound`]; [`Code::BadRequest`] if it is done; [`Code::ShuttingDown`].
    pub async fn resume(&self, id: &str) -> Result<DownloadStatus, Error> {
        let id = id.to_owned();
        self.ask(|reply| Command::Resume { id, reply }).await
    }

    /// # Errors
    /// [`Code::NotFound`], [`Code::ShuttingDown`].
    pub async fn prioritise(&self, id: &str, priority: Priority) -> Result<DownloadStatus, Error> {
        let id = id.to_owned();
        self.ask(|reply| Command::Prioritise {
            id,
            priority,
            reply,
        })
        .await
    }

    /// Takes it from the list and, unless it is done, deletes what has arrived. Returns once that is so.
    ///
    /// # Errors
    /// [`Code::NotFound`]; [`Code::Storage`] if something cannot be deleted: it has left the list all the same;
    /// [`Code::ShuttingDown`].
    pub async fn remove(&self, id: &str) -> Result<(), Error> {
        let id = id.to_owned();
        self.ask(|reply| Command::Remove { id, reply }).await
    }

    /// The downloads: those under way first, in the order in which they go; then those that wait for somebody; then
    /// the last few done, newest first. While bytes arrive it changes at most four times a second.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Arc<Vec<DownloadStatus>>> {
        self.seen.clone()
    }

    /// What the user should know about the list itself, in plain sentences.
    #[must_use]
    pub fn notices(&self) -> watch::Receiver<Vec<String>> {
        self.notices.clone()
    }

    /// Changes the limits of what runs and of what comes.
    pub fn configure(&self, rate_limit: u64, at_once: u8) {
        // Fails only after shutdown, when there is nothing left to limit.
        let _ = self.commands.send(Command::Configure {
            rate_limit,
            at_once,
        });
    }

    /// Stops all transfers, keeps what has arrived, and returns when all have ended and the list is on the disk. May
    /// be called more than once.
    pub async fn shutdown(&self) {
        let (reply, ended) = oneshot::channel();
        let _ = self.commands.send(Command::Shutdown { reply });
        // An error means that the owner has already ended.
        let _ = ended.await;
    }

    async fn ask<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<Result<T, Error>>) -> Command,
    ) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        let _ = self.commands.send(command(reply));
        // The owner drops no reply before it shuts down.
        answer
            .await
            .unwrap_or_else(|_| Err(Error::new(Code::ShuttingDown, "Tierbar is shutting down")))
    }
}

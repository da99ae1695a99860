//! The download queue. One task owns the list; everyone else holds a [`Queue`].
//!
//! A download is a [`Job`]: the files of one model, downloaded one after the other. The list is kept in a file that only the
//! user can read, and downloads in progress resume at the next start. The bytes and their progress belong to the transfer.

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

use crate::{FetchedFile, FileSpec, RateLimit, Terms, TokenFor, Web, transfer::transfer};
use commands::{Change, Command};
use futures_util::future::BoxFuture;
use owner::Owner;
use serde::{Deserialize, Serialize};
use std::{fmt, path::PathBuf, sync::Arc};
use tierbar_core::{
    Code, Error,
    download::{DownloadStatus, Priority},
};
use tokio::sync::{mpsc, oneshot, watch};

/// A model to download.
#[derive(Clone, Serialize, Deserialize)]
pub struct Job {
    /// The requested model. It is shown and logged, so it holds no secrets.
    pub reference: String,
    /// Downloaded in this order. The first one names the download.
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

/// Called with a job and its verified files before the download is done. Its error fails the download; another try calls
/// it again and downloads nothing twice.
pub type OnComplete =
    Arc<dyn Fn(&Job, &[FetchedFile]) -> BoxFuture<'static, Result<(), Error>> + Send + Sync>;

pub struct QueueOptions {
    /// The file of the list. Its folder exists.
    pub state_file: PathBuf,
    pub web: Web,
    pub tokens: TokenFor,
    /// Downloads that run at the same time, not counting those in a long wait for their server; see
    /// [`tierbar_core::config::DownloadsConfig::AT_ONCE`].
    pub at_once: u8,
    /// Bytes per second for all downloads together; 0 means no limit.
    pub rate_limit: u64,
    pub on_complete: OnComplete,
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

/// A handle to the downloads. Dropping the last clone has the effect of [`Queue::shutdown`]. When a call returns, the list
/// in memory and on the disk includes its change.
#[derive(Debug, Clone)]
pub struct Queue {
    commands: mpsc::UnboundedSender<Command>,
    seen: watch::Receiver<Arc<Vec<DownloadStatus>>>,
    notices: watch::Receiver<Vec<String>>,
}

impl Queue {
    /// Reads the list and resumes downloads in progress. Must be called within a tokio runtime.
    ///
    /// A list that cannot be read is renamed to `….bad` and reported by [`Queue::notices`].
    pub fn start(options: QueueOptions) -> Self {
        let rate = RateLimit::new(options.rate_limit);
        let (web, tokens, shared) = (options.web, options.tokens, rate.clone());
        let transfer: run::Transfer = Arc::new(move |work| {
            let (web, tokens, rate) = (web.clone(), tokens.clone(), shared.clone());
            Box::pin(async move {
                transfer(
                    &Terms::default(),
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
        let effects = run::Effects {
            transfer,
            on_complete: options.on_complete,
        };
        Owner::start(options.state_file, effects, options.at_once, rate)
    }

    /// Adds a download. Returns `true` if it is a new one.
    ///
    /// If the same reference or files are already on the list, that download is returned with the higher of the two
    /// priorities, and resumes if it was paused. A failed or finished download of the reference is replaced by the new one,
    /// which resumes from its partial files.
    ///
    /// # Errors
    /// [`Code::BadRequest`] for a job without files, or whose file has the name of another download's, on a volume
    /// that may be case-insensitive; [`Code::Overloaded`]; [`Code::ShuttingDown`].
    pub async fn add(&self, job: Job) -> Result<(DownloadStatus, bool), Error> {
        self.send(|reply| Command::Add { job, reply }).await
    }

    /// Pauses a download until [`Queue::resume`], also across restarts. The partial file is kept.
    ///
    /// # Errors
    /// [`Code::NotFound`]; [`Code::BadRequest`] if it is done or has failed; [`Code::ShuttingDown`].
    pub async fn pause(&self, id: &str) -> Result<DownloadStatus, Error> {
        self.change(id, Change::Pause).await
    }

    /// Resumes a paused download, retries a failed one, and ends the wait of a waiting one.
    ///
    /// # Errors
    /// [`Code::NotFound`]; [`Code::BadRequest`] if it is done; [`Code::ShuttingDown`].
    pub async fn resume(&self, id: &str) -> Result<DownloadStatus, Error> {
        self.change(id, Change::Resume).await
    }

    /// # Errors
    /// [`Code::NotFound`], [`Code::ShuttingDown`].
    pub async fn prioritize(&self, id: &str, priority: Priority) -> Result<DownloadStatus, Error> {
        self.change(id, Change::Prioritize(priority)).await
    }

    /// Removes a download from the list and, unless it is done, deletes its partial files.
    ///
    /// # Errors
    /// [`Code::NotFound`]; [`Code::Storage`] if a file cannot be deleted, though the download is off the list;
    /// [`Code::ShuttingDown`].
    pub async fn remove(&self, id: &str) -> Result<(), Error> {
        let id = id.to_owned();
        self.send(|reply| Command::Remove { id, reply }).await
    }

    /// Returns the downloads: active ones in order, then those that wait for the user, then
    /// the last few done, newest first. While bytes arrive it changes at most four times a second.
    pub fn watch(&self) -> watch::Receiver<Arc<Vec<DownloadStatus>>> {
        self.seen.clone()
    }

    /// Problems with the list itself, in plain sentences.
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

    /// Stops all transfers and keeps their partial files. Returns once all have ended and the list is on the disk. May be
    /// called more than once.
    pub async fn shutdown(&self) {
        let (reply, ended) = oneshot::channel();
        let _ = self.commands.send(Command::Shutdown { reply });
        // An error means that the owner has already ended.
        let _ = ended.await;
    }

    async fn change(&self, id: &str, change: Change) -> Result<DownloadStatus, Error> {
        let id = id.to_owned();
        self.send(|reply| Command::Change { id, change, reply })
            .await
    }

    async fn send<T>(
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

//! Runs one download: its files, one after the other, and then the completion callback.

use super::{Job, OnComplete, entry::Part};
use crate::{
    FileSpec,
    transfer::{FetchedFile, Phase, Progress},
};
use futures_util::{FutureExt as _, future::BoxFuture};
use serde::{Deserialize, Serialize};
use std::{any::Any, panic::AssertUnwindSafe, sync::Arc};
use tierbar_core::{Code, Error};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

pub(super) struct FileTransfer {
    pub(super) spec: FileSpec,
    pub(super) progress: watch::Sender<Progress>,
    pub(super) cancel: CancellationToken,
}

pub(super) type Transfer =
    Arc<dyn Fn(FileTransfer) -> BoxFuture<'static, Result<FetchedFile, Error>> + Send + Sync>;

/// What a run does to the world.
#[derive(Clone)]
pub(super) struct Effects {
    pub(super) transfer: Transfer,
    pub(super) on_complete: OnComplete,
}

#[derive(Debug, Clone)]
pub(super) struct RunPosition {
    pub(super) file: usize,
    pub(super) progress: Progress,
}

/// An event of a run for the owner. A run's events come in order, `Ended` last.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) id: String,
    pub(super) what: EventKind,
}

#[derive(Debug)]
pub(super) enum EventKind {
    /// Something other than the bytes has changed.
    Moved,
    Whole {
        file: usize,
        whole: VerifiedFile,
    },
    Lost {
        file: usize,
    },
    /// All files are downloaded; canceling no longer has an effect.
    Completing,
    Ended(Result<(), Error>),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct VerifiedFile {
    #[serde(flatten)]
    pub(super) file: FetchedFile,
    /// Whether this download made the file; else it was there before.
    pub(super) ours: bool,
}

impl VerifiedFile {
    /// Returns whether it matches the expected size and sha256, where given.
    pub(super) fn is(&self, spec: &FileSpec) -> bool {
        let hash = spec.sha256.as_ref();
        spec.size.is_none_or(|size| size == self.file.size)
            && hash.is_none_or(|hash| hash.eq_ignore_ascii_case(&self.file.sha256))
    }
}

pub(super) struct Run {
    pub(super) id: String,
    pub(super) job: Job,
    /// What an earlier run has fetched, file by file.
    pub(super) parts: Vec<Part>,
    pub(super) effects: Effects,
    pub(super) current: watch::Sender<RunPosition>,
    pub(super) events: mpsc::UnboundedSender<Event>,
    pub(super) cancel: CancellationToken,
}

impl Run {
    /// Runs to the end and reports it, even after a panic.
    pub(super) async fn run(mut self) {
        let ended = AssertUnwindSafe(self.files()).catch_unwind().await;
        let result = ended.unwrap_or_else(|panic| Err(panic_error(&self.job, panic.as_ref())));
        self.notify(EventKind::Ended(result));
    }

    async fn files(&mut self) -> Result<(), Error> {
        let mut fetched = Vec::with_capacity(self.job.files.len());
        for file in 0..self.job.files.len() {
            let whole = match self.parts[file].whole.take() {
                Some(whole) if still_there(&self.job.files[file], &whole).await => whole,
                Some(_) => {
                    self.parts[file].received = 0;
                    self.notify(EventKind::Lost { file });
                    self.file(file).await?
                }
                None => self.file(file).await?,
            };
            fetched.push(whole.file);
        }
        if self.cancel.is_cancelled() {
            return Err(Error::new(Code::Cancelled, "the download was stopped"));
        }
        self.notify(EventKind::Completing);
        (self.effects.on_complete)(&self.job, &fetched).await
    }

    async fn file(&mut self, file: usize) -> Result<VerifiedFile, Error> {
        let spec = self.job.files[file].clone();
        let ours = !tokio::fs::try_exists(&spec.dest).await.unwrap_or(false);
        let start = Progress {
            received: self.parts[file].received,
            total: spec.size,
            phase: Phase::Connecting,
        };
        let (progress, mut seen) = watch::channel(start);
        let mut transfer = (self.effects.transfer)(FileTransfer {
            spec,
            progress,
            cancel: self.cancel.clone(),
        });
        let result = loop {
            tokio::select! {
                biased;
                result = &mut transfer => break result,
                Ok(()) = seen.changed() => {
                    let progress = seen.borrow_and_update().clone();
                    self.move_to(RunPosition { file, progress });
                }
            }
        };
        // The last of it, so that a download that stops shows all that it has.
        let progress = seen.borrow().clone();
        self.move_to(RunPosition { file, progress });
        let whole = VerifiedFile {
            file: result?,
            ours,
        };
        self.notify(EventKind::Whole {
            file,
            whole: whole.clone(),
        });
        Ok(whole)
    }

    /// The owner polls the bytes; all other changes are reported at once.
    fn move_to(&self, current: RunPosition) {
        let before = self.current.send_replace(current.clone());
        if before.file != current.file
            || !is_same_phase(&before.progress.phase, &current.progress.phase)
        {
            self.notify(EventKind::Moved);
        }
    }

    fn notify(&self, what: EventKind) {
        // Fails only when the owner is gone.
        let _ = self.events.send(Event {
            id: self.id.clone(),
            what,
        });
    }
}

fn is_same_phase(one: &Phase, other: &Phase) -> bool {
    match (one, other) {
        // Each wait is reported: during a long one, another download runs.
        (Phase::Waiting { .. }, Phase::Waiting { .. }) => one == other,
        _ => std::mem::discriminant(one) == std::mem::discriminant(other),
    }
}

async fn still_there(spec: &FileSpec, whole: &VerifiedFile) -> bool {
    tokio::fs::metadata(&spec.dest)
        .await
        .is_ok_and(|file| file.is_file() && file.len() == whole.file.size)
}

fn panic_error(job: &Job, panic: &(dyn Any + Send)) -> Error {
    let message = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    let message = format!(
        "the download of {} hit a defect in Tierbar: {message}",
        job.reference
    );
    Error::new(Code::Internal, message).hint("try again, and report it if it happens again")
}

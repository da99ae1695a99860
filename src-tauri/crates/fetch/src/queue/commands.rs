//! The commands of the owner.

use super::{
    Job,
    entry::{self, Entry, EntryState},
    owner::{Owner, discard, slots},
};
use crate::transfer::Phase;
use tierbar_core::{
    Code, Error, bad_request,
    download::{DownloadStatus, Priority},
};
use tokio::sync::oneshot;

/// The longest list of downloads. More would be a mistake of the caller.
const LONGEST: usize = 256;

pub(super) type Reply<T> = oneshot::Sender<Result<T, Error>>;

#[derive(Debug)]
pub(super) enum Command {
    Add {
        job: Job,
        reply: Reply<(DownloadStatus, bool)>,
    },
    Change {
        id: String,
        change: Change,
        reply: Reply<DownloadStatus>,
    },
    Remove {
        id: String,
        reply: Reply<()>,
    },
    Configure {
        rate_limit: u64,
        at_once: u8,
    },
    Shutdown {
        reply: oneshot::Sender<()>,
    },
}

#[derive(Debug)]
pub(super) enum Change {
    Pause,
    Resume,
    Prioritize(Priority),
}

impl Owner {
    /// Replies are sent after [`Self::settle`], so that the list agrees with them.
    pub(super) async fn command(&mut self, command: Command) {
        // A dropped reply becomes a shutdown error for its caller.
        if self.closing && !matches!(command, Command::Shutdown { .. }) {
            return;
        }
        match command {
            Command::Add { job, reply } => {
                let added = self.add(job).await;
                self.settle().await;
                let answer = added.and_then(|(id, new)| Ok((self.find(&id)?.status(), new)));
                let _ = reply.send(answer);
            }
            Command::Change { id, change, reply } => {
                let changed = self.find(&id).and_then(|entry| entry.change(change));
                self.settle().await;
                let answer = changed.and_then(|()| Ok(self.find(&id)?.status()));
                let _ = reply.send(answer);
            }
            Command::Remove { id, reply } => match self.find(&id) {
                Ok(entry) if entry.standing == EntryState::Done => {
                    self.entries.retain(|entry| entry.id != id);
                    self.settle().await;
                    let _ = reply.send(Ok(()));
                }
                Ok(entry) => {
                    entry.cancel();
                    entry.standing = EntryState::Removed;
                    entry.waiting.push(reply);
                    self.settle().await;
                }
                Err(error) => drop(reply.send(Err(error))),
            },
            Command::Configure {
                rate_limit,
                at_once,
            } => {
                self.rate.set(rate_limit);
                self.at_once = slots(at_once);
                self.settle().await;
            }
            Command::Shutdown { reply } => {
                self.closed.push(reply);
                self.close();
            }
        }
    }

    /// A download that is being removed is not found.
    fn find(&mut self, id: &str) -> Result<&mut Entry, Error> {
        let mut entries = self.entries.iter_mut();
        entries
            .find(|entry| entry.id == id && entry.standing != EntryState::Removed)
            .ok_or_else(|| {
                Error::new(Code::NotFound, format!("there is no download {id}"))
                    .hint("it may be done and off the list; see the list of downloads")
            })
    }

    async fn add(&mut self, job: Job) -> Result<(String, bool), Error> {
        entry::check(&job)?;
        if let Some(entry) = self.entries.iter_mut().find(|entry| {
            matches!(entry.standing, EntryState::Wanted | EntryState::Paused) && entry.is_of(&job)
        }) {
            entry.job.priority = entry.job.priority.max(job.priority);
            // Adding it again resumes it.
            entry.standing = EntryState::Wanted;
            return Ok((entry.id.clone(), false));
        }
        let replaced: Vec<_> = (self.entries)
            .extract_if(.., |entry| {
                matches!(entry.standing, EntryState::Failed(_) | EntryState::Done)
                    && entry.is_of(&job)
            })
            .collect();
        let refused = self.refusal(&job);
        let mut entry = Entry::new(job);
        if let Err(error) = refused {
            self.entries.extend(replaced);
            return Err(error);
        }
        for old in replaced {
            entry.inherit(&old);
            if let EntryState::Failed(_) = old.standing {
                let kept = std::slice::from_ref(&entry);
                // It does not conflict with the new one.
                if let Err(error) = discard(old, kept).await {
                    tracing::warn!(%error, "cannot delete what an earlier try left");
                }
            }
        }
        tracing::info!(
            reference = entry.job.reference,
            id = entry.id,
            "download added"
        );
        let id = entry.id.clone();
        self.entries.push(entry);
        Ok((id, true))
    }

    fn refusal(&self, job: &Job) -> Result<(), Error> {
        let unfinished = || {
            (self.entries.iter())
                .filter(|entry| !matches!(entry.standing, EntryState::Done | EntryState::Removed))
        };
        if let Some(other) = unfinished().find(|entry| entry.collides(job)) {
            let message = format!(
                "{} and {}, which is on the list of downloads, have the same destination {}",
                job.reference,
                other.job.reference,
                other.file()
            );
            return Err(bad_request(message).hint(
                "wait until that one is done and rename its file, or remove it from the list",
            ));
        }
        if unfinished().count() >= LONGEST {
            let message = format!("the list of downloads is full ({LONGEST})");
            return Err(
                Error::new(Code::Overloaded, message).hint("remove downloads that you do not need")
            );
        }
        Ok(())
    }
}

impl Entry {
    fn change(&mut self, change: Change) -> Result<(), Error> {
        let refuse = |why: &str| {
            let message = format!("the download of {} {why}", self.job.reference);
            Err(bad_request(message))
        };
        match (change, &self.standing) {
            (Change::Prioritize(priority), _) => self.job.priority = priority,
            (Change::Pause, EntryState::Done) => {
                return refuse("is done, so it cannot be paused");
            }
            (Change::Pause, EntryState::Failed(_)) => {
                return refuse("has failed and is not running, so it cannot be paused");
            }
            (Change::Pause, _) => {
                self.cancel();
                self.standing = EntryState::Paused;
            }
            (Change::Resume, EntryState::Done) => return refuse("is done"),
            (Change::Resume, _) => {
                // A run that waits ends, and the next one tries at once.
                let task = self.task.as_ref();
                if task.is_some_and(|task| matches!(task.phase, Phase::Waiting { .. })) {
                    self.cancel();
                }
                self.standing = EntryState::Wanted;
            }
        }
        Ok(())
    }
}

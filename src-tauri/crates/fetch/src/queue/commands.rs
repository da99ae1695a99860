//! The commands of the owner.

use super::{
    Job,
    entry::{self, Entry, EntryState},
    owner::{Owner, discard, limit, slots},
};
use crate::transfer::Phase;
use tierbar_core::{
    Code, Error,
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
    Pause {
        id: String,
        reply: Reply<DownloadStatus>,
    },
    Resume {
        id: String,
        reply: Reply<DownloadStatus>,
    },
    Prioritize {
        id: String,
        priority: Priority,
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
            Command::Pause { id, reply } => {
                let changed = self.pause(&id);
                self.answer(&id, changed, reply).await;
            }
            Command::Resume { id, reply } => {
                let changed = self.resume(&id);
                self.answer(&id, changed, reply).await;
            }
            Command::Prioritize {
                id,
                priority,
                reply,
            } => {
                let changed = self.find(&id).map(|entry| entry.job.priority = priority);
                self.answer(&id, changed, reply).await;
            }
            Command::Remove { id, reply } => match self.find(&id) {
                Ok(entry) if matches!(entry.standing, EntryState::Done) => {
                    self.entries.retain(|entry| entry.id != id);
                    self.settle().await;
                    let _ = reply.send(Ok(()));
                }
                Ok(entry) => {
                    entry.cancel();
                    entry.standing = EntryState::Removed(vec![reply]);
                    self.settle().await;
                }
                Err(error) => drop(reply.send(Err(error))),
            },
            Command::Configure {
                rate_limit,
                at_once,
            } => {
                self.rate.set(limit(rate_limit));
                self.at_once = slots(at_once);
                self.settle().await;
            }
            Command::Shutdown { reply } => {
                self.closed.push(reply);
                self.close();
            }
        }
    }

    async fn answer(&mut self, id: &str, changed: Result<(), Error>, reply: Reply<DownloadStatus>) {
        self.settle().await;
        let answer = changed.and_then(|()| self.find(id).map(|entry| entry.status()));
        let _ = reply.send(answer);
    }

    /// A download that is being removed is not found.
    fn find(&mut self, id: &str) -> Result<&mut Entry, Error> {
        let mut entries = self.entries.iter_mut();
        entries
            .find(|entry| entry.id == id && !matches!(entry.standing, EntryState::Removed(_)))
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
        let unfinished =
            |entry: &&Entry| !matches!(entry.standing, EntryState::Done | EntryState::Removed(_));
        let in_the_way = self
            .entries
            .iter()
            .filter(unfinished)
            .find(|entry| entry.collides(job));
        if let Some(other) = in_the_way {
            let message = format!(
                "{} and {}, which is on the list of downloads, have the same destination {}",
                job.reference,
                other.job.reference,
                other.file()
            );
            return Err(Error::new(Code::BadRequest, message).hint(
                "wait until that one is done and rename its file, or remove it from the list",
            ));
        }
        if self.entries.iter().filter(unfinished).count() >= LONGEST {
            let message = format!("the list of downloads is full ({LONGEST})");
            return Err(
                Error::new(Code::Overloaded, message).hint("remove downloads that you do not need")
            );
        }
        Ok(())
    }

    fn pause(&mut self, id: &str) -> Result<(), Error> {
        let entry = self.find(id)?;
        let why = match entry.standing {
            EntryState::Done => "is done",
            EntryState::Failed(_) => "has failed and is not running",
            _ => {
                entry.cancel();
                entry.standing = EntryState::Paused;
                return Ok(());
            }
        };
        let message = format!(
            "the download of {} {why}, so it cannot be paused",
            entry.job.reference
        );
        Err(Error::new(Code::BadRequest, message))
    }

    fn resume(&mut self, id: &str) -> Result<(), Error> {
        let entry = self.find(id)?;
        if let EntryState::Done = entry.standing {
            let message = format!("the download of {} is done", entry.job.reference);
            return Err(Error::new(Code::BadRequest, message));
        }
        // A run that waits ends, and the next one tries at once.
        if entry
            .task
            .as_ref()
            .is_some_and(|task| matches!(task.phase, Phase::Waiting { .. }))
        {
            entry.cancel();
        }
        entry.standing = EntryState::Wanted;
        Ok(())
    }
}

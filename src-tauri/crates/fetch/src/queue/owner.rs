//! The one task that owns the list: it takes commands and the runs' events, and after each sees to it that those run
//! that should.

use super::{
    Queue,
    commands::{Command, Reply},
    entry::{self, Entry, EntryState, Task},
    order,
    run::{Effects, Event, EventKind, Run, RunPosition},
    saved::StateFile,
};
use crate::{
    RateLimit, blocking,
    transfer::{Phase, Progress},
};
use std::{path::PathBuf, sync::Arc, time::Duration};
use tierbar_core::{Code, Error, config::DownloadsConfig, download::DownloadStatus};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{Instant, MissedTickBehavior, interval},
};
use tokio_util::sync::CancellationToken;

/// How often received bytes are published.
const TICK: Duration = Duration::from_millis(250);
/// Finished downloads that stay on the list.
const LAST_DONE: usize = 20;

pub(super) struct Owner {
    /// By age; a finished one by when it finished.
    pub(super) entries: Vec<Entry>,
    effects: Effects,
    pub(super) at_once: usize,
    pub(super) rate: RateLimit,
    file: StateFile,
    events: mpsc::UnboundedSender<Event>,
    seen: watch::Sender<Arc<Vec<DownloadStatus>>>,
    /// About the list as it was read.
    opened: Option<String>,
    notices: watch::Sender<Vec<String>>,
    pub(super) closing: bool,
    pub(super) closed: Vec<oneshot::Sender<()>>,
    /// Of removals, sent once the list without them is on the disk.
    answers: Vec<(Reply<()>, Result<(), Error>)>,
}

impl Owner {
    pub(super) fn start(
        state_file: PathBuf,
        effects: Effects,
        at_once: u8,
        rate: RateLimit,
    ) -> Queue {
        let (file, entries, opened) = StateFile::open(state_file);
        let (commands, inbox) = mpsc::unbounded_channel();
        let (events, happened) = mpsc::unbounded_channel();
        let owner = Self {
            entries,
            effects,
            at_once: slots(at_once),
            rate,
            file,
            events,
            seen: watch::Sender::default(),
            notices: watch::Sender::new(opened.clone().into_iter().collect()),
            opened,
            closing: false,
            closed: Vec::new(),
            answers: Vec::new(),
        };
        owner.publish();
        let queue = Queue {
            commands,
            seen: owner.seen.subscribe(),
            notices: owner.notices.subscribe(),
        };
        tokio::spawn(owner.run(inbox, happened));
        queue
    }

    async fn run(
        mut self,
        mut commands: mpsc::UnboundedReceiver<Command>,
        mut events: mpsc::UnboundedReceiver<Event>,
    ) {
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut handles = true;
        self.settle().await;
        while !self.closing || self.any_runs() {
            tokio::select! {
                command = commands.recv(), if handles => match command {
                    Some(command) => self.command(command).await,
                    None => {
                        handles = false;
                        self.close();
                    }
                },
                Some(event) = events.recv() => {
                    self.event(event);
                    self.settle().await;
                }
                _ = tick.tick(), if self.any_runs() => {
                    let now = Instant::now();
                    self.entries.iter_mut().for_each(|entry| entry.observe(now));
                    self.publish();
                }
            }
        }
        self.settle().await;
        for closed in self.closed.drain(..) {
            let _ = closed.send(());
        }
    }

    fn any_runs(&self) -> bool {
        self.entries.iter().any(|entry| entry.task.is_some())
    }

    /// Ends all runs, which start again with the next program.
    pub(super) fn close(&mut self) {
        self.closing = true;
        self.entries.iter().for_each(Entry::cancel);
    }

    fn event(&mut self, event: Event) {
        let Some(at) = self.entries.iter().position(|entry| entry.id == event.id) else {
            return;
        };
        let entry = &mut self.entries[at];
        match event.what {
            EventKind::Moved => entry.observe(Instant::now()),
            EventKind::Whole { file, whole } => {
                entry.parts[file].whole = Some(whole);
                // The completion callback follows the last one.
                if file + 1 < entry.parts.len()
                    && let Some(task) = &mut entry.task
                {
                    task.phase = Phase::Connecting;
                }
            }
            EventKind::Lost { file } => {
                let part = &mut entry.parts[file];
                (part.whole, part.received) = (None, 0);
            }
            EventKind::Completing => {
                if let Some(task) = &mut entry.task {
                    task.completing = true;
                }
            }
            EventKind::Ended(result) => {
                entry.observe(Instant::now());
                let was_cancelled = entry
                    .task
                    .take()
                    .is_some_and(|task| task.cancel.is_cancelled());
                self.ended(at, was_cancelled, result);
            }
        }
    }

    fn ended(&mut self, at: usize, was_cancelled: bool, result: Result<(), Error>) {
        let entry = &mut self.entries[at];
        let reference = &entry.job.reference;
        match (result, &entry.standing) {
            // It was all here before it could be stopped: then it is done, and only leaves the list.
            (Ok(()), EntryState::Removed) => {
                let waiting = self.entries.remove(at).waiting.into_iter();
                self.answers.extend(waiting.map(|reply| (reply, Ok(()))));
            }
            (Ok(()), _) => {
                tracing::info!(reference, "download done");
                entry.standing = EntryState::Done;
                let done = self.entries.remove(at);
                self.entries.push(done);
            }
            (Err(error), EntryState::Wanted)
                if !(was_cancelled && error.code == Code::Cancelled) =>
            {
                tracing::warn!(reference, %error, "download failed");
                entry.standing = EntryState::Failed(error.to_text(": "));
            }
            // It was stopped by a command, which set its state.
            (Err(_), _) => {}
        }
    }

    /// Makes the running transfers, the published list and the file agree with the list.
    pub(super) async fn settle(&mut self) {
        self.delete_removed().await;
        self.forget_old();
        if !self.closing {
            self.start_and_stop();
        }
        self.publish();
        if let Some(text) = self.file.unwritten(&self.entries) {
            let failed = self.file.write(text).await.err();
            if let Some(error) = &failed {
                tracing::warn!(%error, "cannot write the list of downloads");
            }
            let failed = failed.map(|error| error.message);
            let current: Vec<_> = self.opened.iter().cloned().chain(failed).collect();
            self.notices.send_if_modified(|notices| {
                let differ = *notices != current;
                *notices = current;
                differ
            });
        }
        for (reply, answer) in self.answers.drain(..) {
            let _ = reply.send(answer);
        }
    }

    async fn delete_removed(&mut self) {
        let gone: Vec<_> = (self.entries)
            .extract_if(.., |entry| {
                entry.task.is_none() && entry.standing == EntryState::Removed
            })
            .collect();
        for mut entry in gone {
            let waiting = std::mem::take(&mut entry.waiting).into_iter();
            let outcome = discard(entry, &self.entries).await;
            self.answers
                .extend(waiting.map(|reply| (reply, outcome.clone())));
        }
    }

    fn forget_old(&mut self) {
        let done = |entry: &Entry| entry.standing == EntryState::Done;
        let all = self.entries.iter().filter(|entry| done(entry)).count();
        let mut surplus = all.saturating_sub(LAST_DONE);
        self.entries.retain(|entry| {
            let forget = surplus > 0 && done(entry);
            surplus -= usize::from(forget);
            !forget
        });
    }

    fn start_and_stop(&mut self) {
        let (wanted, _) = self.turns();
        for (at, entry) in self.entries.iter().enumerate() {
            if !wanted.contains(&at) && entry.standing == EntryState::Wanted {
                entry.cancel();
            }
        }
        let taken = self.entries.iter().filter(|entry| entry.takes_a_place());
        let free = self.at_once.saturating_sub(taken.count());
        let mut next = wanted;
        next.retain(|&at| self.entries[at].task.is_none());
        for at in next.into_iter().take(free) {
            self.start_run(at);
        }
    }

    /// Returns the entries that should run now, and all entries to run in order.
    fn turns(&self) -> (Vec<usize>, Vec<usize>) {
        let candidates: Vec<_> = (self.entries.iter().enumerate())
            .filter_map(|(at, entry)| {
                let blocked = self.entries.iter().any(|other| {
                    other.id != entry.id
                        && (other.task.is_some() || other.standing == EntryState::Removed)
                        && other.collides(&entry.job)
                });
                Some((at, entry.candidate(blocked)?))
            })
            .collect();
        let (positions, candidates): (Vec<_>, Vec<_>) = candidates.into_iter().unzip();
        let place =
            |indices: Vec<usize>| indices.into_iter().map(|index| positions[index]).collect();
        (
            place(order::candidates_to_run(&candidates, self.at_once)),
            place(order::order(&candidates)),
        )
    }

    fn start_run(&mut self, at: usize) {
        let entry = &mut self.entries[at];
        let cancel = CancellationToken::new();
        let (current, seen) = watch::channel(RunPosition {
            file: 0,
            progress: Progress {
                received: entry.parts[0].received,
                total: entry.parts[0].total,
                phase: Phase::Connecting,
            },
        });
        entry.task = Some(Task::new(cancel.clone(), seen));
        let run = Run {
            id: entry.id.clone(),
            job: entry.job.clone(),
            parts: entry.parts.clone(),
            effects: self.effects.clone(),
            current,
            events: self.events.clone(),
            cancel,
        };
        tokio::spawn(run.run());
    }

    fn publish(&self) {
        let (_, going) = self.turns();
        let stopped = (self.entries.iter())
            .filter(|entry| matches!(entry.standing, EntryState::Paused | EntryState::Failed(_)));
        let done = (self.entries.iter().rev()).filter(|entry| entry.standing == EntryState::Done);
        let list: Vec<_> = (going.into_iter().map(|at| &self.entries[at]))
            .chain(stopped)
            .chain(done)
            .map(Entry::status)
            .collect();
        self.seen.send_if_modified(|seen| {
            let differ = **seen != list;
            if differ {
                *seen = Arc::new(list);
            }
            differ
        });
    }
}

pub(super) fn slots(at_once: u8) -> usize {
    let allowed = DownloadsConfig::AT_ONCE;
    at_once.clamp(*allowed.start(), *allowed.end()).into()
}

/// Deletes what has arrived of a download, but for what others still need.
pub(super) async fn discard(entry: Entry, others: &[Entry]) -> Result<(), Error> {
    let needed: Vec<_> = (others.iter())
        .filter(|other| other.standing != EntryState::Removed)
        .flat_map(|other| other.job.files.iter().map(|file| entry::folded(&file.dest)))
        .collect();
    // Deleting gigabytes takes a while on some volumes.
    let work = move || entry.discard(|path| needed.contains(&entry::folded(path)));
    blocking("deleting the download", work).await
}

//! One download of the list.

use super::{
    Job,
    commands::Reply,
    meter::Meter,
    order::{Candidate, RunStage},
    run::{RunPosition, VerifiedFile},
    secret,
};
use crate::{
    FileSpec,
    transfer::{Phase, discard, journal},
};
use serde::{Deserialize, Serialize};
use std::{path::Path, time::Duration};
use tierbar_core::{
    Code, Error, bad_request,
    download::{DownloadFile, DownloadState, DownloadStatus},
};
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;
use url::Url;

/// Who waits this long for a server lets another download go meanwhile; a server that only stumbles keeps its turn.
const LONG_WAIT: Duration = Duration::from_secs(10);

/// As it is kept on the disk.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) id: String,
    #[serde(flatten, serialize_with = "secret::serialize_without")]
    pub(super) job: Job,
    pub(super) parts: Vec<Part>,
    #[serde(flatten)]
    pub(super) standing: EntryState,
    /// A URL of it has a secret, which is not on the disk.
    #[serde(default)]
    pub(super) withheld: bool,
    /// Its run, from its start until it has reported its end.
    #[serde(skip)]
    pub(super) task: Option<Task>,
    /// Who waits until it is removed.
    #[serde(skip)]
    pub(super) waiting: Vec<Reply<()>>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Part {
    pub(super) received: u64,
    pub(super) total: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) whole: Option<VerifiedFile>,
}

/// What is to become of it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", content = "reason", rename_all = "lowercase")]
pub(super) enum EntryState {
    /// Runs when it is its turn.
    Wanted,
    /// By the user.
    Paused,
    /// Why, and what to do.
    Failed(String),
    Done,
    /// To be deleted once its run has ended.
    Removed,
}

#[derive(Debug)]
pub(super) struct Task {
    pub(super) cancel: CancellationToken,
    pub(super) current: watch::Receiver<RunPosition>,
    pub(super) phase: Phase,
    pub(super) completing: bool,
    /// It has waited long for its server, and no byte has come since.
    waits: bool,
    file: usize,
    meter: Meter,
}

impl Task {
    pub(super) fn new(cancel: CancellationToken, current: watch::Receiver<RunPosition>) -> Self {
        Self {
            cancel,
            current,
            phase: Phase::Connecting,
            completing: false,
            waits: false,
            file: 0,
            meter: Meter::default(),
        }
    }
}

impl Entry {
    pub(super) fn new(job: Job) -> Self {
        let parts = job.files.iter().map(|file| Part {
            total: file.size,
            ..Part::default()
        });
        Self {
            id: uuid::Uuid::new_v4().to_string(),
            parts: parts.collect(),
            withheld: (job.files.iter()).any(|file| secret::without_secrets(&file.url).is_some()),
            job,
            standing: EntryState::Wanted,
            task: None,
            waiting: Vec::new(),
        }
    }

    /// Takes note of where its run is.
    pub(super) fn observe(&mut self, now: Instant) {
        let Some(task) = &mut self.task else { return };
        let RunPosition { file, progress } = task.current.borrow_and_update().clone();
        let part = &mut self.parts[file];
        if part.whole.is_none() {
            part.received = progress.received;
            part.total = progress.total.or(part.total);
        }
        // What was there before this phase, or of the next file, did not arrive in it.
        if task.file != file || !matches!(progress.phase, Phase::Receiving) {
            task.meter.reset();
        }
        task.file = file;
        task.phase = progress.phase;
        task.waits = match &task.phase {
            Phase::Waiting { until, .. } => {
                task.waits || until.is_some_and(|until| until.duration_since(now) >= LONG_WAIT)
            }
            _ => false,
        };
        if matches!(task.phase, Phase::Receiving) {
            let received = self.parts.iter().map(Part::received).sum();
            task.meter.note(now, received);
        }
    }

    fn running(&self) -> Option<&Task> {
        self.task
            .as_ref()
            .filter(|task| task.completing || !task.cancel.is_cancelled())
    }

    /// Returns `None` if it is not to run.
    pub(super) fn candidate(&self, blocked: bool) -> Option<Candidate> {
        let running = match self.running() {
            Some(task) if task.completing || matches!(task.phase, Phase::Verifying) => {
                RunStage::Finishing
            }
            Some(task) if task.waits => RunStage::Waiting,
            Some(_) => RunStage::Yes,
            None => RunStage::No,
        };
        (self.standing == EntryState::Wanted).then_some(Candidate {
            priority: self.job.priority,
            running,
            blocked: blocked && self.task.is_none(),
        })
    }

    /// Whether its run takes one of the places that there are.
    pub(super) fn takes_a_place(&self) -> bool {
        self.task.is_some() && !self.running().is_some_and(|task| task.waits)
    }

    pub(super) fn cancel(&self) {
        if let Some(task) = &self.task {
            task.cancel.cancel();
        }
    }

    fn state(&self) -> (DownloadState, Option<String>) {
        match &self.standing {
            EntryState::Done => (DownloadState::Done, None),
            EntryState::Failed(reason) => (DownloadState::Failed, Some(reason.clone())),
            EntryState::Paused => (DownloadState::Paused, None),
            EntryState::Wanted | EntryState::Removed => match self.running() {
                None => (DownloadState::Queued, None),
                Some(task) if task.completing => (DownloadState::Verifying, None),
                Some(task) => match &task.phase {
                    Phase::Connecting | Phase::Receiving => (DownloadState::Downloading, None),
                    Phase::Waiting { reason, .. } => (DownloadState::Waiting, Some(reason.clone())),
                    Phase::Verifying => (DownloadState::Verifying, None),
                },
            },
        }
    }

    pub(super) fn status(&self) -> DownloadStatus {
        let (state, reason) = self.state();
        let received = self.parts.iter().map(Part::received).sum();
        let total = self.parts.iter().map(Part::total).sum::<Option<u64>>();
        let rate = match (state, &self.task) {
            (DownloadState::Downloading, Some(task)) => task.meter.rate(),
            _ => 0,
        };
        let left = total.map(|total| total.saturating_sub(received));
        DownloadStatus {
            id: self.id.clone(),
            reference: self.job.reference.clone(),
            file: self.file(),
            files: self.files(),
            state,
            priority: self.job.priority,
            received_bytes: received,
            total_bytes: total,
            bytes_per_second: rate,
            eta_seconds: left.filter(|_| rate > 0).map(|left| left.div_ceil(rate)),
            reason,
            warnings: self.job.warnings.clone(),
        }
    }

    pub(super) fn file(&self) -> String {
        self.job.files.first().map(name).unwrap_or_default()
    }

    fn files(&self) -> Vec<DownloadFile> {
        let file = |(file, part): (_, &Part)| DownloadFile {
            name: name(file),
            size_bytes: part.total(),
        };
        self.job.files.iter().zip(&self.parts).map(file).collect()
    }

    /// Returns whether both would write the same file on a case-insensitive volume.
    pub(super) fn collides(&self, job: &Job) -> bool {
        let taken = |file: &FileSpec| {
            let name = folded(&file.dest);
            self.job.files.iter().any(|own| folded(&own.dest) == name)
        };
        job.files.iter().any(taken)
    }

    /// Returns whether a job is for the same download: the same reference, or the same files under another name.
    pub(super) fn is_of(&self, job: &Job) -> bool {
        let dests =
            |job: &Job| -> Vec<_> { job.files.iter().map(|file| folded(&file.dest)).collect() };
        let urls = |job: &Job| -> Vec<_> {
            let urls = job.files.iter().map(|file| comparable_url(&file.url));
            urls.collect()
        };
        let same_files = dests(&self.job) == dests(job);
        if self.job.reference == job.reference {
            // A URL is shown without its query, which may name the file.
            same_files || !job.reference.contains("://")
        } else {
            same_files && urls(&self.job) == urls(job)
        }
    }

    /// Takes over the files that an earlier try has fetched whole. Once it was done, they may have been damaged or
    /// replaced: those that have a hash are read again.
    pub(super) fn inherit(&mut self, old: &Self) {
        let done = old.standing == EntryState::Done;
        for (file, part) in self.job.files.iter().zip(&mut self.parts) {
            if done && file.sha256.is_some() {
                continue;
            }
            let mut files = old.job.files.iter().zip(&old.parts);
            if let Some((earlier, left)) = files.find(|(it, _)| it.dest == file.dest) {
                // Of a file without a hash it counts where it came from.
                let same = file.sha256.is_some()
                    || comparable_url(&file.url) == comparable_url(&earlier.url);
                let whole = left.whole.as_ref();
                part.whole = whole.filter(|whole| same && whole.is(file)).cloned();
                part.received = left.received;
            }
        }
    }

    /// Deletes what has arrived. What was there before stays, and so do the files that are still `needed`.
    pub(super) fn discard(&self, needed: impl Fn(&Path) -> bool) -> Result<(), Error> {
        let mut failed = Ok(());
        for (file, part) in self.job.files.iter().zip(&self.parts) {
            if needed(&file.dest) {
                continue;
            }
            let mut outcome = discard(&file.dest);
            if part.whole.as_ref().is_some_and(|whole| whole.ours) {
                outcome = outcome.and(journal::remove(&file.dest));
            }
            if let Err(error) = outcome {
                let place = file.dest.display();
                let message = format!("the partial file of {place} cannot be deleted: {error}");
                let error = Error::new(Code::Storage, message);
                failed = Err(error.hint("delete it yourself to free its space"));
            }
        }
        failed
    }
}

impl Part {
    fn received(&self) -> u64 {
        let whole = self.whole.as_ref();
        whole.map_or(self.received, |whole| whole.file.size)
    }

    fn total(&self) -> Option<u64> {
        let whole = self.whole.as_ref();
        whole.map(|whole| whole.file.size).or(self.total)
    }
}

fn name(file: &FileSpec) -> String {
    let name = file.dest.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Whether the queue can take it.
pub(super) fn check(job: &Job) -> Result<(), Error> {
    let refuse = |what: &str| {
        let message = format!("the download of {} {what}", job.reference);
        Err(bad_request(message))
    };
    let mut names: Vec<_> = job.files.iter().map(|file| folded(&file.dest)).collect();
    if names.is_empty() {
        return refuse("has no files");
    }
    let has_place = |file: &FileSpec| file.dest.is_absolute() && file.dest.file_name().is_some();
    if !job.files.iter().all(has_place) {
        return refuse("has a file without an absolute path");
    }
    names.sort();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        return refuse("has two files with the same name on a case-insensitive volume");
    }
    Ok(())
}

/// Without what differs between two signatures of one file.
fn comparable_url(url: &Url) -> Url {
    let mut url = secret::without_secrets(url).unwrap_or_else(|| url.clone());
    url.set_fragment(None);
    url
}

/// Returns the name as a case-insensitive volume sees it.
pub(super) fn folded(path: &Path) -> String {
    path.to_string_lossy().to_lowercase()
}

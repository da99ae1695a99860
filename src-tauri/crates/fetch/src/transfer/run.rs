//! Runs one transfer: resumes a partial file, requests the rest in pieces or one stream, verifies it and gives it its name.
//! The checks themselves are in `verify`.

use super::{
    FetchedFile, FileSpec, Phase, Report, Terms,
    backoff::Backoff,
    canceled_error, destination,
    disk::{self, Disk},
    head::FileProperties,
    journal::{Identity, Paths},
    pieces::Plan,
    ranges::Ranges,
    rate::RateLimit,
    segments::{End, Fetch},
    source::{Source, Trouble},
    verify, whole,
};
use crate::{
    blocking, platform,
    web::{Answer, display_url, host_of},
};
use std::{fs::File, io, path::Path, sync::Arc, time::Duration};
use tierbar_core::{Code, Error};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How often a file may change on the server during a transfer before it fails.
const CHANGES: u32 = 3;
/// The size of the first piece, whose answer shows whether the server supports ranges.
const FIRST_PIECE: u64 = 2 << 20;

pub(super) struct Transfer<'a> {
    pub(super) terms: &'a Terms,
    pub(super) spec: &'a FileSpec,
    pub(super) rate: &'a RateLimit,
    pub(super) cancel: CancellationToken,
    pub(super) report: Report,
    pub(super) folder: &'a Path,
    pub(super) paths: Paths,
    /// Locked for as long as it is open.
    pub(super) file: Arc<File>,
    pub(super) source: Arc<Source>,
}

/// How a try ended, if not in an error.
enum Attempt {
    Fetched(FetchedFile),
    /// The file is another one now.
    Changed,
    /// A stream ended early and cannot be resumed.
    Broken,
}

impl Transfer<'_> {
    pub(super) async fn run(&self) -> Result<FetchedFile, Error> {
        let mut backoff = Backoff::default();
        let mut changes = 0;
        loop {
            match self.once(&mut backoff).await? {
                Attempt::Fetched(fetched) => return Ok(fetched),
                Attempt::Changed => changes += 1,
                Attempt::Broken => {}
            }
            self.start_anew()?;
            if changes > CHANGES {
                let file = display_url(&self.spec.url);
                let message =
                    format!("{file} changed on the server {changes} times during the download");
                return Err(Error::new(Code::Corrupt, message)
                    .hint("try again later, or download from another source"));
            }
        }
    }

    /// Removes a partial file that no later try can use: an empty one, or one without a journal. Called while it is
    /// still locked.
    pub(super) fn remove_if_useless(&self) {
        let empty = self.file.metadata().is_ok_and(|part| part.len() == 0);
        if (empty || !self.paths.journal.exists())
            && let Err(error) = self.paths.remove_all()
        {
            tracing::warn!(%error, "cannot remove an unusable partial file");
        }
    }

    fn failed(&self, error: &io::Error) -> Error {
        disk::full_or_broken(error).detail("path", self.paths.part.display().to_string())
    }

    fn start_anew(&self) -> Result<(), Error> {
        self.report.received(0);
        let removed = self.paths.remove_journal();
        let emptied = removed.and_then(|()| self.file.set_len(0));
        emptied.map_err(|error| self.failed(&error))
    }

    /// Returns what an earlier run left, if it is of the same file. A file with the same sha256 is the same, whatever its
    /// URL: URLs of the hub name a commit, and another commit may have the same file.
    fn resumable(&self) -> Result<Option<(FileProperties, Ranges)>, Error> {
        let part = self.file.metadata();
        let journal = part.and_then(|part| self.paths.read_journal(part.len()));
        let Some((identity, ranges)) = journal.map_err(|error| self.failed(&error))? else {
            return Ok(None);
        };
        let same_place = identity.url == display_url(&self.spec.url);
        let same = identity.sha256 == self.wanted()
            && (same_place || identity.sha256.is_some())
            && self.spec.size.is_none_or(|size| size == identity.total);
        // Another URL has validators of its own.
        let known = FileProperties {
            total: Some(identity.total),
            etag: identity.etag.filter(|_| same_place),
            last_modified: identity.last_modified.filter(|_| same_place),
        };
        Ok(same.then_some((known, ranges)))
    }

    fn wanted(&self) -> Option<String> {
        self.spec.sha256.as_deref().map(str::to_ascii_lowercase)
    }

    fn identity(&self, known: &FileProperties, total: u64) -> Identity {
        Identity {
            url: display_url(&self.spec.url),
            sha256: self.wanted(),
            total,
            etag: known.etag.clone(),
            last_modified: known.last_modified.clone(),
        }
    }

    async fn once(&self, backoff: &mut Backoff) -> Result<Attempt, Error> {
        let left = self.resumable()?;
        if left.is_none() {
            self.start_anew()?;
        }
        let (known, ranges) = left.unwrap_or_default();
        self.report.change(|progress| {
            progress.received = ranges.bytes();
            progress.total = known.total.or(self.spec.size);
        });
        let mut plan = match known.total {
            Some(total) => Plan::new(ranges.gaps(total)),
            None => Plan::new(vec![(0, self.spec.size.unwrap_or(u64::MAX).max(1))]),
        };
        let Some(piece) = plan.next(FIRST_PIECE) else {
            let disk = self.disk(ranges, &known, known.total.unwrap_or(0));
            return self.finish(disk, known.total.unwrap_or(0)).await;
        };
        let answer = match self.first_answer(piece.rest(), &known, backoff).await? {
            Ok(answer) => answer,
            Err(Trouble::Whole(answer)) if !known.differs(&answer) => {
                if known.total.is_some() {
                    // Ranges worked before and no longer do.
                    self.start_anew()?;
                }
                return self.whole(*answer, backoff).await;
            }
            Err(Trouble::Beyond(Some(0))) if known.total.is_none() => {
                verify::check_size(self.spec, 0)?;
                let known = FileProperties {
                    total: Some(0),
                    ..known
                };
                let disk = self.disk(Ranges::default(), &known, 0);
                return self.finish(disk, 0).await;
            }
            Err(_) => return Ok(Attempt::Changed),
        };
        let known = FileProperties::from_answer(&answer);
        let total = known.total.unwrap_or(0);
        verify::check_size(self.spec, total)?;
        destination::check_space(self.folder, total - ranges.bytes(), self.terms.margin)?;
        self.report.change(|progress| progress.total = Some(total));
        // What is missing is known only now; the first piece already has its answer.
        let mut plan = Plan::new(ranges.gaps(total));
        let Some(piece) = plan.next_until(piece.rest().1) else {
            return Ok(Attempt::Changed);
        };
        let disk = self.disk(ranges, &known, total);
        let known = Arc::new(known);
        let fetch = Fetch {
            source: &self.source,
            known: &known,
            disk: &disk,
            rate: self.rate,
            terms: self.terms,
            report: &self.report,
        };
        let fetched = fetch.run(plan, (piece, answer), backoff);
        let end = self.unless_canceled(fetched).await.flatten();
        self.report.received(disk.received());
        match end {
            Ok(End::Complete) => self.finish(disk, total).await,
            Ok(End::Changed) => disk.close().await.map(|()| Attempt::Changed),
            Err(error) => Err(close_failed(disk, error).await),
        }
    }

    /// Downloads the whole file over one connection, from a server without ranges.
    async fn whole(&self, answer: Answer, backoff: &mut Backoff) -> Result<Attempt, Error> {
        let known = FileProperties::from_answer(&answer);
        let total = known.total.or(self.spec.size);
        if let Some(total) = known.total {
            verify::check_size(self.spec, total)?;
        }
        destination::check_space(self.folder, total.unwrap_or(0), self.terms.margin)?;
        self.report.change(|progress| progress.total = total);
        let none = Ranges::default();
        let disk = Disk::start(&self.file, &self.paths, none, total, None, self.terms);
        let fetched = whole::fetch(answer, self.spec, &disk, self.rate, &self.report, backoff);
        let end = self.unless_canceled(fetched).await.flatten();
        match end {
            Ok(Ok(total)) => self.finish(disk, total).await,
            Ok(Err(trouble)) => {
                disk.close().await?;
                let wait = backoff.next_wait(trouble, self.terms)?;
                self.wait(wait, backoff).await?;
                Ok(Attempt::Broken)
            }
            Err(error) => Err(close_failed(disk, error).await),
        }
    }

    fn disk(&self, ranges: Ranges, known: &FileProperties, total: u64) -> Disk {
        Disk::start(
            &self.file,
            &self.paths,
            ranges,
            Some(total),
            Some(self.identity(known, total)),
            self.terms,
        )
    }

    /// Requests the first piece until a server answers.
    async fn first_answer(
        &self,
        part: (u64, u64),
        known: &FileProperties,
        backoff: &mut Backoff,
    ) -> Result<Result<Answer, Trouble>, Error> {
        loop {
            let answer = self.unless_canceled(self.source.open(part, known));
            let trouble = match answer.await? {
                Ok(answer) => return Ok(Ok(answer)),
                Err(Trouble::Beyond(total)) if known.total.is_none() && total != Some(0) => {
                    let host = host_of(&self.spec.url);
                    let message =
                        format!("{host} refuses a request for the first bytes of the file (416)");
                    Trouble::Wrong(Error::new(Code::Corrupt, message))
                }
                Err(trouble @ (Trouble::Whole(_) | Trouble::Beyond(_) | Trouble::Changed)) => {
                    let Some(contradiction) = trouble.contradiction(known) else {
                        return Ok(Err(trouble));
                    };
                    let Some(wait) = backoff.after_wrong_answer(contradiction, self.terms) else {
                        // The server repeats its answer, which is taken as true; failures count anew.
                        backoff.reset();
                        return Ok(Err(trouble));
                    };
                    self.wait(wait, backoff).await?;
                    continue;
                }
                Err(trouble) => trouble,
            };
            let wait = backoff.next_wait(trouble, self.terms)?;
            self.wait(wait, backoff).await?;
        }
    }

    async fn wait(&self, wait: Duration, backoff: &Backoff) -> Result<(), Error> {
        let until = Instant::now() + wait;
        self.report.phase(Phase::Waiting {
            reason: backoff.reason.clone(),
            until: Some(until),
        });
        self.unless_canceled(tokio::time::sleep_until(until)).await
    }

    async fn unless_canceled<T>(&self, work: impl Future<Output = T>) -> Result<T, Error> {
        let done = self.cancel.run_until_cancelled(work).await;
        done.ok_or_else(canceled_error)
    }

    /// Waits until all bytes are written and hashed, verifies the sha256, and gives the file its name.
    async fn finish(&self, disk: Disk, total: u64) -> Result<Attempt, Error> {
        if !disk.is_hashed() {
            self.report.whole(total);
            self.report.phase(Phase::Verifying);
        }
        let sha256 = disk.finish(total, &self.cancel).await?;
        if let Err(mismatch) = verify::check_sha256(self.spec, &sha256) {
            self.paths
                .remove_all()
                .map_err(|error| self.failed(&error))?;
            return Err(mismatch);
        }
        let (file, paths) = (self.file.clone(), self.paths.clone());
        let (dest, folder) = (self.spec.dest.clone(), self.folder.to_owned());
        blocking("moving the download into place", move || {
            // Bytes beyond the end are from an earlier, longer file.
            destination::check_in_place(&file, &paths.part)
                .and_then(|()| file.set_len(total))
                .map_err(|error| disk::full_or_broken(&error))?;
            destination::rename_into_place(&file, &paths, &dest, &folder, &platform::sync)?;
            platform::drop_cached(&file, 0, total);
            Ok(())
        })
        .await?;
        self.report.whole(total);
        Ok(Attempt::Fetched(FetchedFile {
            size: total,
            sha256,
        }))
    }
}

/// Returns the first error; a second one of the disk follows from it.
async fn close_failed(disk: Disk, error: Error) -> Error {
    if let Err(echo) = disk.close().await {
        tracing::debug!(%echo, "closing a failed download");
    }
    error
}

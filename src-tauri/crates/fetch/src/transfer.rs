//! Downloads one URL to one verified file: in pieces over several connections, resumable after any interruption.
//!
//! Beside `dest` lie `dest.part` with the bytes, and `dest.part.json`, the journal, which lists only what is on the
//! disk. Bytes are hashed as they arrive. The file gets its name once its length and hash are verified (`verify`).

mod backoff;
mod destination;
mod disk;
mod head;
pub(crate) mod journal;
mod pieces;
mod ranges;
mod rate;
mod run;
mod segments;
mod source;
mod verify;
mod whole;

pub use disk::sha256_of;
pub use rate::RateLimit;

use self::{journal::Paths, run::Transfer, source::Source};
use crate::{blocking, web::Web};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tierbar_core::{Code, Error};
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;
use url::Url;

/// A file to fetch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSpec {
    pub url: Url,
    /// Absolute, in a folder that exists. The name leaves room for `.part.json.new`.
    pub dest: PathBuf,
    /// In bytes. Another size on the server is refused.
    pub size: Option<u64>,
    /// In hex. Without it, only the length is checked, and the hash is reported.
    pub sha256: Option<String>,
}

impl FileSpec {
    /// Returns the bytes that are not on the disk yet, or `None` if the size is unknown. Blocking.
    pub fn missing(&self) -> Option<u64> {
        let size = self.size?;
        if self.dest.exists() {
            return Some(0);
        }
        // The file is sparse: the space it occupies is what has arrived.
        let part = fs::metadata(Paths::of(&self.dest).part);
        let here = part.map_or(0, |file| file.blocks() * 512);
        Some(size.saturating_sub(here))
    }
}

/// Returns the access token for a URL, if there is one. Called for every request; the token is not kept.
pub type TokenFor = Arc<dyn Fn(&Url) -> Option<SecretString> + Send + Sync>;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes written, those of earlier runs included.
    pub received: u64,
    /// `None` until known.
    pub total: Option<u64>,
    pub phase: Phase,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Phase {
    #[default]
    Connecting,
    Receiving,
    /// Nothing arrives; the next try is at `until`.
    Waiting {
        reason: String,
        until: Option<Instant>,
    },
    /// All bytes have arrived and are being hashed.
    Verifying,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchedFile {
    pub size: u64,
    /// Computed from the bytes on the disk, in lower-case hex.
    pub sha256: String,
}

/// Intervals and margins that tests change.
#[derive(Debug, Clone)]
pub struct Terms {
    /// The interval between journals, and so about what a crash loses.
    pub journal_every: Duration,
    /// After the first failure; doubles up to 30 s.
    pub first_wait: Duration,
    /// Bytes to leave free on the volume. `None` means 1 GiB, or a twentieth of a smaller volume.
    pub margin: Option<u64>,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            journal_every: Duration::from_secs(1),
            first_wait: Duration::from_millis(500),
            margin: None,
        }
    }
}

/// Downloads a file, resuming a partial one. Returns once the file is verified and has its name. `cancel` stops it and keeps
/// the partial file. Needs a tokio runtime; each transfer uses three blocking threads.
///
/// # Errors
/// [`Code::Corrupt`] if the size or hash is wrong (a wrong hash discards the bytes, so that another try starts clean);
/// [`Code::Storage`] if the disk is full or the name is taken; [`Code::AlreadyRunning`] if another process downloads
/// the same file; [`Code::Cancelled`]; and the errors of [`Web::get`].
pub async fn transfer(
    terms: &Terms,
    web: &Web,
    spec: &FileSpec,
    tokens: &TokenFor,
    rate: &RateLimit,
    progress: watch::Sender<Progress>,
    cancel: CancellationToken,
) -> Result<FetchedFile, Error> {
    let report = Report(progress);
    let folder = destination::folder_of(&spec.dest)?;
    let paths = Paths::of(&spec.dest);
    if let Some(fetched) = existing(spec, &report, &cancel).await? {
        return Ok(fetched);
    }
    let file = Arc::new(destination::lock(&paths)?);
    crate::platform::spare_cache(&file);
    let transfer = Transfer {
        terms,
        spec,
        rate,
        cancel,
        report,
        folder,
        paths,
        file,
        source: Arc::new(Source::new(web, &spec.url, tokens)),
    };
    let fetched = transfer.run().await;
    if fetched.is_err() {
        transfer.remove_if_useless();
    }
    fetched
}

/// Removes a partial file and its journal, unless another process is downloading it.
///
/// # Errors
/// Those of the file system. A missing file is not an error.
pub fn discard(dest: &Path) -> io::Result<()> {
    destination::discard(&Paths::of(dest))
}

fn canceled_error() -> Error {
    Error::new(
        Code::Cancelled,
        "the download was stopped; the partial file is kept",
    )
}

/// Publishes the progress. Only changes wake the watchers.
struct Report(watch::Sender<Progress>);

impl Report {
    fn change(&self, change: impl FnOnce(&mut Progress)) {
        self.0.send_if_modified(|progress| {
            let before = progress.clone();
            change(progress);
            *progress != before
        });
    }

    fn phase(&self, phase: Phase) {
        self.change(|progress| progress.phase = phase);
    }

    fn received(&self, received: u64) {
        self.change(|progress| progress.received = received);
    }

    fn whole(&self, size: u64) {
        self.change(|progress| {
            progress.received = size;
            progress.total = Some(size);
        });
    }
}

/// Returns the file if it exists under its final name.
async fn existing(
    spec: &FileSpec,
    report: &Report,
    cancel: &CancellationToken,
) -> Result<Option<FetchedFile>, Error> {
    if spec.dest.symlink_metadata().is_ok() {
        report.phase(Phase::Verifying);
    }
    let (dest, sha256, cancel) = (spec.dest.clone(), spec.sha256.clone(), cancel.clone());
    let check = move || verify::check_existing(&dest, sha256.as_deref(), || !cancel.is_cancelled());
    let size = blocking("checking the file", check).await?;
    let (Some(size), Some(sha256)) = (size, &spec.sha256) else {
        return Ok(None);
    };
    report.whole(size);
    // A crash after the rename leaves a journal without its file.
    if let Err(error) = discard(&spec.dest) {
        tracing::warn!(%error, "cannot remove the journal of a finished download");
    }
    Ok(Some(FetchedFile {
        size,
        sha256: sha256.to_ascii_lowercase(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_bytes_are_those_the_partial_file_does_not_occupy() {
        let folder = tempfile::tempdir().unwrap();
        let spec = |size| FileSpec {
            url: "https://example.com/m.gguf".parse().unwrap(),
            dest: folder.path().join("m.gguf"),
            size,
            sha256: None,
        };
        assert_eq!(spec(None).missing(), None);
        assert_eq!(spec(Some(1 << 20)).missing(), Some(1 << 20));
        let part = fs::File::create(folder.path().join("m.gguf.part")).unwrap();
        part.set_len(1 << 20).unwrap();
        assert_eq!(spec(Some(1 << 20)).missing(), Some(1 << 20));
        std::os::unix::fs::FileExt::write_all_at(&part, &[1; 1 << 18], 1 << 19).unwrap();
        part.sync_all().unwrap();
        assert_eq!(spec(Some(1 << 20)).missing(), Some(3 << 18));
        fs::write(&spec(None).dest, "").unwrap();
        assert_eq!(spec(Some(1 << 20)).missing(), Some(0));
    }
}

//! One URL to one verified file: in pieces over several connections, resumable after anything.
//!
//! Beside `dest` lie `dest.part` with the bytes, and `dest.part.json`, the journal, which claims only what lies
//! on the disk. Bytes are hashed as they arrive. The file gets its name once length and hash are right.

mod disk;
mod head;
mod journal;
mod landing;
mod pieces;
mod ranges;
mod rate;
mod run;
mod segments;
mod source;
mod weather;
mod whole;

pub use rate::RateLimit;

use self::{journal::Paths, run::Transfer, source::Source};
use crate::web::Web;
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
use tokio::{sync::watch, task::spawn_blocking, time::Instant};
use tokio_util::sync::CancellationToken;
use url::Url;

/// A file to fetch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSpec {
    pub url: Url,
    /// Absolute; in a folder that is there. The name leaves room for `.part.json.new`.
    pub dest: PathBuf,
    /// In bytes. Another size on the server is refused.
    pub size: Option<u64>,
    /// In hex. Without it the length is checked, and the hash is only told.
    pub sha256: Option<String>,
}

impl FileSpec {
    /// Bytes that are not on the disk yet; `None` if nobody has told the size. Blocking.
    #[must_use]
    pub fn missing(&self) -> Option<u64> {
        let size = self.size?;
        if self.dest.exists() {
            return Some(0);
        }
        // It is sparse: what it occupies is what has arrived.
        let part = fs::metadata(Paths::of(&self.dest).part);
        let here = part.map_or(0, |file| file.blocks() * 512);
        Some(size.saturating_sub(here))
    }
}

/// The access token for a URL, if there is one. Asked again for every request, and never kept.
pub type TokenFor = Arc<dyn Fn(&Url) -> Option<SecretString> + Send + Sync>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Bytes written, those of earlier runs included.
    pub received: u64,
    /// `None` until a server has told it.
    pub total: Option<u64>,
    pub phase: Phase,
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            received: 0,
            total: None,
            phase: Phase::Connecting,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    Connecting,
    Receiving,
    /// Nothing arrives; the next try is at `until`.
    Waiting {
        reason: String,
        until: Option<Instant>,
    },
    /// All bytes are here; the rest of them is hashed.
    Verifying,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    pub size: u64,
    /// Computed over what lies on the disk, in lower-case hex.
    pub sha256: String,
    pub etag: Option<String>,
}

/// What is other than usual only in tests.
#[derive(Debug, Clone)]
pub struct Terms {
    /// At most what a crash loses, less the time that a sync takes.
    pub journal_every: Duration,
    /// After the first failure; doubles up to 30 s.
    pub first_wait: Duration,
    /// Bytes to be left free on the volume; `None`: 1 GiB, or a twentieth of a smaller volume.
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

/// Resumes what is there; returns once the file is verified and has its name. `cancel` ends it and keeps what has
/// arrived. Needs a tokio runtime; three of its blocking threads work for each transfer.
///
/// # Errors
/// [`Code::Corrupt`] if what arrived is not what was announced (a wrong hash discards it, so that another try
/// starts clean); [`Code::Storage`] for a disk that is full or a name that is taken; [`Code::AlreadyRunning`] if
/// another process fetches the same file; [`Code::Cancelled`]; and the server's refusals as [`Web::get`].
pub async fn transfer(
    web: &Web,
    spec: &FileSpec,
    tokens: &TokenFor,
    rate: &RateLimit,
    progress: watch::Sender<Progress>,
    cancel: CancellationToken,
) -> Result<Fetched, Error> {
    transfer_with(&Terms::default(), web, spec, tokens, rate, progress, cancel).await
}

/// [`transfer`] on other terms.
///
/// # Errors
/// As [`transfer`].
pub async fn transfer_with(
    terms: &Terms,
    web: &Web,
    spec: &FileSpec,
    tokens: &TokenFor,
    rate: &RateLimit,
    progress: watch::Sender<Progress>,
    cancel: CancellationToken,
) -> Result<Fetched, Error> {
    let report = Report(progress);
    let folder = landing::folder_of(&spec.dest)?;
    let paths = Paths::of(&spec.dest);
    if let Some(fetched) = existing(spec, &report, &cancel).await? {
        return Ok(fetched);
    }
    let file = Arc::new(landing::lock(&paths)?);
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
        transfer.leave_nothing_useless();
    }
    fetched
}

/// Removes what has arrived of a file that is no longer wanted. What another process fetches now is its own and stays.
///
/// # Errors
/// Those of the file system; what is not there is no error.
pub fn discard(dest: &Path) -> io::Result<()> {
    landing::discard(&Paths::of(dest))
}

fn cancelled() -> Error {
    Error::new(
        Code::Cancelled,
        "the download was stopped; what has arrived is kept",
    )
}

/// Tells the progress; only changes wake those who watch.
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
}

/// The file if it has its name already.
async fn existing(
    spec: &FileSpec,
    report: &Report,
    cancel: &CancellationToken,
) -> Result<Option<Fetched>, Error> {
    if spec.dest.symlink_metadata().is_ok() {
        report.phase(Phase::Verifying);
    }
    let (dest, sha256, cancel) = (spec.dest.clone(), spec.sha256.clone(), cancel.clone());
    let look = move || landing::existing(&dest, sha256.as_deref(), || !cancel.is_cancelled());
    let size = spawn_blocking(look)
        .await
        .map_err(|error| Error::new(Code::Internal, error.to_string()))??;
    let (Some(size), Some(sha256)) = (size, &spec.sha256) else {
        return Ok(None);
    };
    report.change(|progress| {
        progress.received = size;
        progress.total = Some(size);
    });
    // A crash between the rename and this leaves a journal of nothing.
    if let Err(error) = discard(&spec.dest) {
        tracing::warn!(%error, "a journal of a finished download stays");
    }
    Ok(Some(Fetched {
        size,
        sha256: sha256.to_ascii_lowercase(),
        etag: None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_of_a_file_is_what_its_partial_file_does_not_occupy() {
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

//! Headers that were read, for as long as their files stay as they were.

use crate::files::ModelFiles;
use parking_lot::Mutex;
use std::{
    collections::{HashMap, HashSet},
    fs, iter,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::SystemTime,
};
use tierbar_core::{Error, ModelAccount};
use tierbar_gguf::ProjectorAccount;

/// The number of parallel readers. The disk limits the speed of more.
const READERS: usize = 4;

/// The stamp of each file of a model.
pub(crate) type Version = Vec<Stamp>;

/// The same means that the file has not changed, nor given its name to another: those of one repository may well be
/// of one size, and keep their times when they are moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) size: u64,
    pub(crate) modified: Option<SystemTime>,
    number: u64,
}

/// What was read of files, each with its version then.
type HeaderCache<A> = Mutex<HashMap<PathBuf, (Version, Result<A, Error>)>>;

#[derive(Debug, Default)]
pub(crate) struct Headers {
    models: HeaderCache<ModelAccount>,
    projectors: HeaderCache<ProjectorAccount>,
}

fn cached<A: Clone>(
    cache: &HeaderCache<A>,
    path: &Path,
    version: &Version,
    read: fn(&Path) -> Result<A, Error>,
) -> Result<A, Error> {
    if let Some((known, account)) = cache.lock().get(path)
        && known == version
    {
        return account.clone();
    }
    let account = read(path);
    let entry = (version.clone(), account.clone());
    cache.lock().insert(path.to_owned(), entry);
    account
}

impl Headers {
    /// Returns the contents of the header, cached for that version of the file.
    pub(crate) fn account(&self, path: &Path, version: &Version) -> Result<ModelAccount, Error> {
        cached(&self.models, path, version, tierbar_gguf::read)
    }

    pub(crate) fn projector(
        &self,
        path: &Path,
        version: &Version,
    ) -> Result<ProjectorAccount, Error> {
        cached(&self.projectors, path, version, tierbar_gguf::projector)
    }

    /// Returns the accounts of many models in order, and drops all others from the cache.
    pub(crate) fn accounts(&self, models: &[ModelFiles]) -> Vec<Result<ModelAccount, Error>> {
        self.read_ahead(models);
        let account = |model: &ModelFiles| self.account(&model.path, &model.version);
        let accounts = models.iter().map(account).collect();
        let mut headers = self.models.lock();
        if headers.len() > models.len() {
            let listed: HashSet<&Path> = models.iter().map(|model| model.path.as_path()).collect();
            headers.retain(|path, _| listed.contains(path.as_path()));
        }
        drop(headers);
        self.projectors.lock().retain(|path, _| path.exists());
        accounts
    }

    fn read_ahead(&self, models: &[ModelFiles]) {
        let unknown: Vec<_> = {
            let headers = self.models.lock();
            let known = |model: &&ModelFiles| {
                let read = headers.get(&model.path);
                read.is_some_and(|(version, _)| *version == model.version)
            };
            models.iter().filter(|model| !known(model)).collect()
        };
        let next = AtomicUsize::new(0);
        let work = || {
            iter::from_fn(|| unknown.get(next.fetch_add(1, Ordering::Relaxed))).for_each(|model| {
                let _ = self.account(&model.path, &model.version);
            });
        };
        thread::scope(|scope| {
            for _ in 1..READERS.min(unknown.len()) {
                scope.spawn(work);
            }
            work();
        });
    }
}

/// Returns the version of the files, unless one is missing.
pub(crate) fn version(files: &[PathBuf]) -> Option<Version> {
    files.iter().map(|path| stamp_at(path)).collect()
}

/// Returns the stamp of the file at the path, following links, or `None` if there is none.
pub(crate) fn stamp_at(path: &Path) -> Option<Stamp> {
    fs::metadata(path).ok().map(|file| stamp(&file))
}

pub(crate) fn stamp(file: &fs::Metadata) -> Stamp {
    Stamp {
        size: file.len(),
        modified: file.modified().ok(),
        number: file.ino(),
    }
}

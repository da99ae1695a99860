//! Headers that were read, for as long as their files stay as they were.

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

type Account = Result<ModelAccount, Error>;
type Projector = Result<ProjectorAccount, Error>;

#[derive(Debug, Default)]
pub(crate) struct Headers {
    models: Mutex<HashMap<PathBuf, (Version, Account)>>,
    projectors: Mutex<HashMap<PathBuf, (Version, Projector)>>,
}

impl Headers {
    /// Returns the contents of the header, cached for that version of the file.
    pub(crate) fn account(&self, path: &Path, version: &Version) -> Account {
        if let Some((known, account)) = self.models.lock().get(path)
            && known == version
        {
            return account.clone();
        }
        let account = tierbar_gguf::read(path);
        let read = (version.clone(), account.clone());
        self.models.lock().insert(path.to_owned(), read);
        account
    }

    /// Returns the contents of a media projector's header.
    pub(crate) fn projector(&self, path: &Path, version: &Version) -> Projector {
        if let Some((known, projector)) = self.projectors.lock().get(path)
            && known == version
        {
            return projector.clone();
        }
        let projector = tierbar_gguf::projector(path);
        let read = (version.clone(), projector.clone());
        self.projectors.lock().insert(path.to_owned(), read);
        projector
    }

    /// Returns the accounts of many files in order, and drops all others from the cache.
    pub(crate) fn accounts(&self, files: &[(&Path, &Version)]) -> Vec<Account> {
        self.read_ahead(files);
        let accounts = files
            .iter()
            .map(|(path, version)| self.account(path, version))
            .collect();
        let mut headers = self.models.lock();
        if headers.len() > files.len() {
            let listed: HashSet<&Path> = files.iter().map(|(path, _)| *path).collect();
            headers.retain(|path, _| listed.contains(path.as_path()));
        }
        drop(headers);
        self.projectors.lock().retain(|path, _| path.exists());
        accounts
    }

    fn read_ahead(&self, files: &[(&Path, &Version)]) {
        let unknown: Vec<_> = {
            let headers = self.models.lock();
            let known = |(path, version): &&(&Path, &Version)| {
                headers
                    .get(*path)
                    .is_some_and(|(known, _)| known == *version)
            };
            files.iter().filter(|file| !known(file)).collect()
        };
        let next = AtomicUsize::new(0);
        let work = || {
            iter::from_fn(|| unknown.get(next.fetch_add(1, Ordering::Relaxed))).for_each(
                |(path, version)| {
                    let _ = self.account(path, version);
                },
            );
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

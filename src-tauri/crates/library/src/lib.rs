//! The models folder: which models are there, what each one is, and which file a name means.
//!
//! All of it is blocking file work: an async caller goes through `spawn_blocking`.

pub mod catalog;
mod folder;
pub mod hub;
mod keepers;
mod name;
mod records;
pub mod reference;
pub mod remote;
mod trash;
mod watch;

pub use name::model_id;

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::SystemTime,
};
use tierbar_core::{Code, Error, ModelAccount, ModelId};

/// One model file of the folder.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub id: ModelId,
    pub path: PathBuf,
    pub size_bytes: u64,
    /// What its header says, or why the file cannot be used.
    pub account: Result<ModelAccount, Error>,
}

/// The models folder. Headers are read once and again only when a file has changed.
#[derive(Debug)]
pub struct Library {
    models_dir: PathBuf,
    headers: Mutex<HashMap<PathBuf, Header>>,
}

#[derive(Debug)]
struct Header {
    version: Version,
    account: Result<ModelAccount, Error>,
}

/// A file with the same size and time of change is the same file.
type Version = (u64, Option<SystemTime>);

impl Library {
    #[must_use]
    pub fn new(models_dir: PathBuf) -> Self {
        Self {
            models_dir,
            headers: Mutex::default(),
        }
    }

    #[must_use]
    pub fn models_dir(&self) -> &Path {
        &self.models_dir
    }

    /// The folder's models and those one folder below, sorted by id. Without media projectors (`mmproj-…`), hidden
    /// files and unfinished downloads. A file that cannot be used is listed with the reason.
    ///
    /// # Errors
    /// [`Code::Storage`] if the folder does not exist or cannot be read.
    pub fn list(&self) -> Result<Vec<Entry>, Error> {
        let mut entries: Vec<Entry> = folder::model_files(&self.models_dir)?
            .into_iter()
            .filter_map(|path| {
                // It may have been removed since the folder was read.
                let size_bytes = fs::metadata(&path).ok()?.len();
                Some(Entry {
                    id: folder::id_of(&path),
                    account: self.account(&path),
                    size_bytes,
                    path,
                })
            })
            .collect();
        entries.sort_by(|a, b| (&a.id, &a.path).cmp(&(&b.id, &b.path)));
        let listed = |path: &PathBuf| entries.iter().any(|entry| entry.path == *path);
        self.headers().retain(|path, _| listed(path));
        Ok(entries)
    }

    /// The file that a configuration or a request names: a model's id, a file name in the folder or a path below
    /// it, or an absolute path or one from `~`. An id that two files share means the one higher up in the folder.
    ///
    /// # Errors
    /// [`Code::ModelMissing`] with the folder and the nearest names.
    pub fn resolve(&self, spec: &str) -> Result<PathBuf, Error> {
        folder::resolve(&self.models_dir, spec)
    }

    /// What the file's header says, from memory if the file has not changed.
    ///
    /// # Errors
    /// Those of [`tierbar_gguf::read`].
    pub fn account(&self, path: &Path) -> Result<ModelAccount, Error> {
        let version = fs::metadata(path)
            .ok()
            .map(|file| (file.len(), file.modified().ok()));
        let Some(version) = version else {
            return tierbar_gguf::read(path);
        };
        if let Some(header) = self.headers().get(path)
            && header.version == version
        {
            return header.account.clone();
        }
        let account = tierbar_gguf::read(path);
        let header = Header {
            version,
            account: account.clone(),
        };
        self.headers().insert(path.to_owned(), header);
        account
    }

    fn headers(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, Header>> {
        self.headers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn missing(message: String) -> Error {
    Error::new(Code::ModelMissing, message)
}

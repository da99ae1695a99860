//! Models on this machine: which there are, what each one is, which file a name means, whether it is sound.
//!
//! They lie in the models folder, in folders that the user added, and where other apps keep theirs. All but
//! [`LibraryWatch`] is blocking file work: an async caller goes through `spawn_blocking`.

pub mod catalog;
mod files;
mod folder;
mod headers;
pub mod hub;
mod inventory;
mod keepers;
mod name;
mod platform;
mod projector;
mod records;
pub mod reference;
pub mod remote;
mod resolve;
mod trash;
mod verify;
mod watch;

pub use keepers::AppFolders;
pub use name::model_id;
pub use records::{Hashed, Origin, Record};
pub use trash::Removed;
pub use verify::{OnProgress, PartHash, Verification};
pub use watch::{LibraryWatch, Pace};

use files::Found;
use headers::{Headers, Version};
use inventory::Inventory;
use projector::Projectors;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use tierbar_core::{Code, Error, ModelAccount, ModelId, config::LibraryConfig, fit::Keeper};
use tierbar_gguf::ProjectorAccount;
use tokio_util::sync::CancellationToken;

/// Where models are looked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LibraryOptions {
    /// The models folder: what lies in it is ours.
    pub models_dir: PathBuf,
    /// Folders that the user added; what lies there is used in place.
    pub folders: Vec<PathBuf>,
    /// What lies in one of these belongs to another app, however it is reached.
    pub apps: AppFolders,
    /// Whether the other apps' models are listed.
    pub other_apps: bool,
}

impl LibraryOptions {
    /// As configured, for the user with that home folder.
    #[must_use]
    pub fn new(models_dir: PathBuf, config: &LibraryConfig, home: &Path) -> Self {
        let full = |folder: &String| match folder.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                home.join(rest.trim_start_matches('/'))
            }
            _ => PathBuf::from(folder),
        };
        Self {
            models_dir,
            folders: config.folders.iter().map(full).collect(),
            apps: AppFolders::of_user(home),
            other_apps: config.other_apps,
        }
    }
}

/// The models folder alone.
impl From<PathBuf> for LibraryOptions {
    fn from(models_dir: PathBuf) -> Self {
        Self {
            models_dir,
            ..Self::default()
        }
    }
}

/// One model: one file, or the parts of a split one.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The file's name without its ending and its part's numbers, or the name that its app gives it. Of two different
    /// models alike the second is `NAME@PLACE`.
    pub id: ModelId,
    /// The first part.
    pub path: PathBuf,
    /// All parts that are there, in order.
    pub parts: Vec<PathBuf>,
    /// Of all parts.
    pub size_bytes: u64,
    pub keeper: Keeper,
    /// The file in the same folder by which the model sees or hears.
    pub projector: Option<PathBuf>,
    /// What is known of where the first part came from.
    pub record: Option<Record>,
    /// What its header says, or why it cannot be used.
    pub account: Result<ModelAccount, Error>,
}

/// Everything that was found, and what the user should know about the search.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scan {
    /// By id.
    pub entries: Vec<Entry>,
    /// Plain sentences, such as that of a folder whose volume is not connected.
    pub notices: Vec<String>,
    /// Why the models folder could not be read.
    pub models_dir_error: Option<Error>,
}

/// The models of this machine. Headers are read once and again only when a file has changed.
#[derive(Debug, Default)]
pub struct Library {
    options: LibraryOptions,
    headers: Arc<Headers>,
}

impl Library {
    #[must_use]
    pub fn new(options: impl Into<LibraryOptions>) -> Self {
        Self {
            options: options.into(),
            headers: Arc::default(),
        }
    }

    /// Another library that knows the headers that this one has read.
    #[must_use]
    pub fn with(&self, options: impl Into<LibraryOptions>) -> Self {
        Self {
            options: options.into(),
            headers: Arc::clone(&self.headers),
        }
    }

    #[must_use]
    pub fn models_dir(&self) -> &Path {
        &self.options.models_dir
    }

    #[must_use]
    pub fn options(&self) -> &LibraryOptions {
        &self.options
    }

    /// The models of all places, sorted by id. A file that is reached in several ways is listed once. Media
    /// projectors, hidden files and unfinished downloads are not; a file that cannot be used is, with the reason.
    ///
    /// # Errors
    /// [`Code::Storage`] if the models folder does not exist or cannot be read. Of other places see
    /// [`Scan::notices`].
    pub fn list(&self) -> Result<Vec<Entry>, Error> {
        let scan = self.scan();
        match scan.models_dir_error {
            Some(error) => Err(error),
            None => Ok(scan.entries),
        }
    }

    /// As [`Library::list`], with what is there whatever else is not.
    #[must_use]
    pub fn scan(&self) -> Scan {
        self.read(self.inventory())
    }

    fn inventory(&self) -> Inventory {
        inventory::take(&self.options)
    }

    /// Folders that may come and go as a whole.
    fn places(&self) -> Vec<PathBuf> {
        let options = &self.options;
        let mut places = vec![options.models_dir.clone()];
        places.extend(options.folders.iter().cloned());
        if options.other_apps {
            places.extend(options.apps.all().map(|(_, path)| path.clone()));
            places.extend(
                options
                    .apps
                    .ollama
                    .iter()
                    .map(|path| path.join("manifests")),
            );
        }
        places
    }

    fn read(&self, inventory: Inventory) -> Scan {
        let Inventory {
            models,
            projectors,
            notices,
            own,
            ..
        } = inventory;
        let files: Vec<_> = models
            .iter()
            .map(|model| (model.path.as_path(), &model.version))
            .collect();
        let accounts = self.headers.accounts(&files);
        let mut projectors = Projectors::read(&projectors, &self.headers);
        let mut loadable = Vec::with_capacity(models.len());
        for (model, account) in models.iter().zip(accounts) {
            let projector = projector::may_be(&account)
                .then(|| self.headers.projector(&model.path, &model.version));
            match projector {
                Some(Ok(projector)) => projectors.add(model.path.clone(), projector),
                Some(Err(_)) | None => loadable.push((model, account)),
            }
        }
        let mut entries: Vec<Entry> = loadable
            .into_iter()
            .map(|(model, account)| entry(model, account, &projectors))
            .collect();
        entries.sort_by(|a, b| (&a.id, &a.path).cmp(&(&b.id, &b.path)));
        Scan {
            entries,
            notices,
            models_dir_error: own,
        }
    }

    /// The file that a configuration or a request names: a model's id, a file's name or a path below the models
    /// folder, or an absolute path or one from `~`. Of a split model, its first part. A name that two models share
    /// means the one higher up, the models folder's first.
    ///
    /// # Errors
    /// [`Code::ModelMissing`] with the folder and the nearest names.
    pub fn resolve(&self, spec: &str) -> Result<PathBuf, Error> {
        resolve::resolve(&self.options.models_dir, spec, || self.inventory())
    }

    /// What the file's header says, from memory if the file has not changed.
    ///
    /// # Errors
    /// Those of [`tierbar_gguf::read`]; [`Code::ModelMissing`] if a part is missing.
    pub fn account(&self, path: &Path) -> Result<ModelAccount, Error> {
        match headers::version(&files::parts_of(path)?) {
            Some(version) => self.headers.account(path, &version),
            None => tierbar_gguf::read(path),
        }
    }

    /// The projector that is to be loaded with a model: of those beside it, one that is named like a projector. Where there is
    /// only one that cannot be used, the reason stands in the place of its account.
    #[must_use]
    pub fn projector(
        &self,
        model: &Path,
        account: &ModelAccount,
    ) -> Option<(PathBuf, Result<ProjectorAccount, Error>)> {
        let beside = std::fs::read_dir(model.parent()?).ok()?.flatten();
        let named = beside.map(|entry| entry.path());
        let named = named.filter(|path| projector::is_named(path) && path != model);
        let files: Vec<_> = named
            .filter_map(|path| Some((path.clone(), headers::version(&[path])?)))
            .collect();
        let chosen = Projectors::read(&files, &self.headers).of(model, account);
        let read = |(path, version): &(PathBuf, Version)| {
            let account = self.headers.projector(path, version);
            (path.clone(), account)
        };
        match chosen {
            Some(chosen) => files.iter().find(|(path, _)| *path == chosen).map(read),
            None => files
                .iter()
                .map(read)
                .filter(|(_, account)| account.is_err())
                .min_by(|(a, _), (b, _)| a.cmp(b)),
        }
    }

    /// Writes down where a file that was fetched came from. Of a split model, for each part.
    ///
    /// # Errors
    /// [`Code::Storage`] if the folder cannot be written to.
    pub fn record(&self, path: &Path, origin: Origin) -> Result<(), Error> {
        records::fetched(path, origin)
    }

    /// Hashes all of a model's files and compares them with what they should be. What is ours is written down.
    ///
    /// # Errors
    /// Those of [`Library::resolve`]; [`Code::Storage`] if a file cannot be read; [`Code::Cancelled`].
    pub fn verify(
        &self,
        spec: &str,
        progress: OnProgress<'_>,
        cancel: &CancellationToken,
    ) -> Result<Verification, Error> {
        let model = self.found(spec)?;
        verify::verify(&model.parts, model.keeper, progress, cancel)
    }

    /// Moves a model's files to the Trash; where there is none, deletes them for good if `permanently` allows it.
    /// `in_use`: the files that are loaded.
    ///
    /// # Errors
    /// Those of [`Library::resolve`]; [`Code::NotOurs`] with how to delete it where it belongs; [`Code::ModelInUse`];
    /// [`Code::Storage`] if it stays where it is.
    pub fn remove(
        &self,
        spec: &str,
        permanently: bool,
        in_use: &[PathBuf],
    ) -> Result<Removed, Error> {
        trash::remove(&self.found(spec)?, permanently, in_use)
    }

    fn found(&self, spec: &str) -> Result<Found, Error> {
        let inventory = self.inventory();
        let path = resolve::resolve(&self.options.models_dir, spec, || inventory.clone())?;
        let listed = inventory
            .models
            .into_iter()
            .find(|model| model.parts.contains(&path));
        match listed {
            Some(model) => Ok(model),
            None => files::unlisted(&path, inventory::keeper_of(&self.options, &path)),
        }
    }
}

fn entry(model: &Found, account: Result<ModelAccount, Error>, projectors: &Projectors) -> Entry {
    let account = match &model.incomplete {
        Some(error) => Err(error.clone()),
        None => account.map_err(|error| unfinished(model, error)),
    };
    // Other apps' folders are not written to, so nothing of ours is there.
    let recorded = matches!(model.keeper, Keeper::Tierbar | Keeper::Folder);
    Entry {
        id: model.id.clone(),
        path: model.path.clone(),
        parts: model.parts.clone(),
        size_bytes: model.size_bytes(),
        keeper: model.keeper,
        projector: account
            .as_ref()
            .ok()
            .and_then(|account| projectors.of(&model.path, account)),
        record: model
            .version
            .first()
            .filter(|_| recorded)
            .and_then(|file| records::current(&model.path, file)),
        account,
    }
}

/// A header tells how long its file should be: one that is shorter is most likely still on its way.
fn unfinished(model: &Found, error: Error) -> Error {
    let Some(expected) = error.details.get("expected_bytes").cloned() else {
        return error;
    };
    let Error { code, details, .. } = error;
    let mut told = Error::new(
        code,
        format!(
            "{} is incomplete ({} of {expected} bytes): is it still being copied?",
            model.id,
            model.size_bytes()
        ),
    )
    .hint("it can be used as soon as all of it is there; if nothing copies it any more, fetch it again");
    told.details = details;
    told
}

fn missing(message: String) -> Error {
    Error::new(Code::ModelMissing, message)
}

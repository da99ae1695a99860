//! The models on this machine: lists them, reads their headers, resolves names to files, verifies and deletes them.
//!
//! Models are in the models folder, in folders that the user added, and in the folders of other apps. Everything but
//! [`LibraryWatch`] blocks on files: async callers use `spawn_blocking`.

pub mod catalog;
mod checksums;
mod entry;
mod files;
mod folder;
mod headers;
pub mod hub;
mod inventory;
mod name;
mod options;
mod other_apps;
mod platform;
mod projector;
mod records;
pub mod reference;
pub mod remote;
mod resolve;
pub mod setup;
mod trash;
mod watch;

pub use checksums::{PartHash, Verification};
pub use entry::{Entry, Scan, modified_at};
pub use name::model_id;
pub use options::LibraryOptions;
pub use other_apps::AppFolders;
pub use records::{FileHash, Origin, Record};
pub use watch::{LibraryWatch, Pace};

use files::ModelFiles;
use headers::{Headers, Version};
use inventory::Inventory;
use projector::{Folders, ProjectorQuery};
pub use projector::{Projector, is_named as is_projector};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use tierbar_core::{Code, Error, ModelAccount, fit::Keeper};
use tokio_util::sync::CancellationToken;

/// The models of this machine. A header is read again only when its file changes.
#[derive(Debug, Default)]
pub struct Library {
    options: LibraryOptions,
    headers: Arc<Headers>,
}

impl Library {
    pub fn new(options: impl Into<LibraryOptions>) -> Self {
        Self {
            options: options.into(),
            headers: Arc::default(),
        }
    }

    /// Returns a library with other options that shares the cached headers.
    pub fn with(&self, options: impl Into<LibraryOptions>) -> Self {
        Self {
            options: options.into(),
            headers: Arc::clone(&self.headers),
        }
    }

    pub fn models_dir(&self) -> &Path {
        &self.options.models_dir
    }

    pub fn options(&self) -> &LibraryOptions {
        &self.options
    }

    /// Returns the models of all folders, sorted by id. A file that is found by several paths is listed once. Media projectors,
    /// hidden files and unfinished downloads are left out; a file that cannot be used is listed with the reason.
    ///
    /// # Errors
    /// [`Code::Storage`] if the models folder does not exist or cannot be read. For other folders, see
    /// [`Scan::notices`].
    pub fn list(&self) -> Result<Vec<Entry>, Error> {
        let scan = self.scan();
        scan.models_dir_error.map_or(Ok(scan.entries), Err)
    }

    /// As [`Library::list`], but also if the models folder cannot be read.
    pub fn scan(&self) -> Scan {
        self.read_headers(self.inventory())
    }

    fn inventory(&self) -> Inventory {
        inventory::take(&self.options)
    }

    /// Returns the folders to watch, which may appear and disappear.
    fn places(&self) -> Vec<PathBuf> {
        let options = &self.options;
        let mut places = vec![options.models_dir.clone()];
        places.extend(options.folders.iter().cloned());
        if options.other_apps {
            let apps = &options.apps;
            places.extend(apps.all().map(|(_, path)| path.clone()));
            places.extend(apps.ollama.iter().map(|path| path.join("manifests")));
        }
        places
    }

    fn read_headers(&self, inventory: Inventory) -> Scan {
        let accounts = self.headers.accounts(&inventory.models);
        let mut folders = Folders::default();
        for (path, version) in inventory.projectors {
            folders.add(self.candidate(path, &version));
        }
        let mut loadable = Vec::with_capacity(inventory.models.len());
        for (model, account) in inventory.models.iter().zip(accounts) {
            let candidate = projector::may_be(&account)
                .then(|| self.candidate(model.path.clone(), &model.version))
                .filter(|candidate| candidate.account.is_ok());
            if let Some(candidate) = candidate {
                folders.add(candidate);
            } else {
                folders.count_model(&model.path);
                loadable.push((model, account));
            }
        }
        let mut entries: Vec<Entry> = loadable
            .into_iter()
            .map(|(model, account)| {
                let mut entry = Entry::new(model, account);
                if let Ok(account) = &entry.account {
                    let origin = entry.record.as_ref().and_then(projector::origin);
                    let mut layers = inventory.layers.iter();
                    entry.projector = match layers.find(|(path, _)| *path == model.path) {
                        Some((_, layer)) => self.of_layer(&model.path, account, layer),
                        None => folders.projector_of(&model.path, account, origin.as_deref()),
                    };
                }
                entry
            })
            .collect();
        entries.sort_by(|a, b| (&a.id, &a.path).cmp(&(&b.id, &b.path)));
        Scan {
            entries,
            notices: inventory.notices,
            models_dir_error: inventory.own,
        }
    }

    /// Returns the file that a configuration or a request names by id, file name, path below the models folder, absolute path
    /// or path from `~`. For a split model, this is the first part. If two models share a name, the first folder wins,
    /// starting with the models folder.
    ///
    /// # Errors
    /// [`Code::ModelMissing`] with the folder and the nearest names.
    pub fn resolve(&self, spec: &str) -> Result<PathBuf, Error> {
        resolve::resolve(&self.options.models_dir, spec, || self.inventory())
    }

    /// Returns the contents of the file's header, cached unless the file has changed.
    ///
    /// # Errors
    /// Those of [`tierbar_gguf::read`]; [`Code::ModelMissing`] if a part is missing.
    pub fn account(&self, path: &Path) -> Result<ModelAccount, Error> {
        match headers::version(&files::parts_of(path)?) {
            Some(version) => self.headers.account(path, &version),
            None => tierbar_gguf::read(path),
        }
    }

    /// Returns the projector to load with a model: that of its app's manifest, or a file beside it. If none can be used, this
    /// is the one that was meant for the model, with the reason.
    pub fn projector(&self, model: &Path, account: &ModelAccount) -> Option<Projector> {
        if let Some(layer) = self.layer_of(model) {
            return self.of_layer(model, account, &layer);
        }
        let mut folders = Folders::default();
        for file in std::fs::read_dir(model.parent()?).ok()?.flatten() {
            let path = file.path();
            let is_model = inventory::is_model(&file.file_name())
                && !folder::is_hidden(&file.file_name())
                && inventory::is_here(&path);
            let Some(version) = headers::version(std::slice::from_ref(&path)).filter(|_| is_model)
            else {
                continue;
            };
            let split = tierbar_gguf::split_of(&folder::file_name(&path));
            let is_named = projector::is_named(&path);
            let may_be = || projector::may_be(&self.headers.account(&path, &version));
            let is_candidate = path != model && (is_named || split.is_none() && may_be());
            let candidate = is_candidate.then(|| self.candidate(path.clone(), &version));
            match candidate.filter(|candidate| is_named || candidate.account.is_ok()) {
                Some(candidate) => folders.add(candidate),
                None if split.is_none_or(|split| split.number == 1) => folders.count_model(&path),
                None => {}
            }
        }
        let version = headers::stamp_at(model);
        let record = version.and_then(|file| records::current_record(model, &file));
        let origin = record.as_ref().and_then(projector::origin);
        folders.projector_of(model, account, origin.as_deref())
    }

    /// Returns the header of a file that is a projector.
    ///
    /// # Errors
    /// Those of [`tierbar_gguf::projector`].
    pub fn projector_account(&self, path: &Path) -> Result<tierbar_gguf::ProjectorAccount, Error> {
        match headers::version(&[path.to_owned()]) {
            Some(version) => self.headers.projector(path, &version),
            None => tierbar_gguf::projector(path),
        }
    }

    fn candidate(&self, path: PathBuf, version: &Version) -> Projector {
        let account = self.headers.projector(&path, version);
        let current = || records::current_record(&path, version.first()?);
        // One that was cut short since is still the one of its repository.
        let record = current().or_else(|| records::read(&path).filter(|_| account.is_err()));
        Projector {
            account,
            size_bytes: version.iter().map(|file| file.size).sum(),
            origin: record.as_ref().and_then(projector::origin),
            path,
        }
    }

    /// Returns the projector that a manifest of Ollama's names for the model.
    fn layer_of(&self, model: &Path) -> Option<PathBuf> {
        let folder = model.parent()?.parent()?;
        let is_ollama = self.options.apps.ollama.iter().any(|app| app == folder);
        let (_, models) = (is_ollama && self.options.other_apps)
            .then(|| other_apps::ollama(folder, inventory::MOST))?;
        let mut models = models.into_iter().filter(|found| found.file == model);
        models.find_map(|found| found.projector)
    }

    fn of_layer(&self, model: &Path, account: &ModelAccount, layer: &Path) -> Option<Projector> {
        let Some(version) = headers::version(&[layer.to_owned()]) else {
            return Some(Projector {
                path: layer.to_owned(),
                size_bytes: 0,
                origin: None,
                account: Err(
                    not_found(format!("its projector {} is missing", layer.display()))
                        .hint("pull the model again in Ollama"),
                ),
            });
        };
        let wanted = ProjectorQuery {
            path: model,
            account,
            origin: None,
            alone: true,
        };
        projector::choose(wanted, &[self.candidate(layer.to_owned(), &version)])
    }

    /// Records where a downloaded file came from. For a split model, call it for each part.
    ///
    /// # Errors
    /// [`Code::Storage`] if the folder cannot be written to.
    pub fn record(&self, path: &Path, origin: Origin) -> Result<(), Error> {
        records::record_download(path, origin)
    }

    /// Returns the URL that a file was downloaded from, unless it has changed since.
    pub fn recorded_url(&self, path: &Path) -> Option<String> {
        let file = headers::stamp_at(path)?;
        records::current_record(path, &file)?.url
    }

    /// Hashes all files of a model and compares them with their recorded checksums. The hashes of our own files are recorded.
    ///
    /// # Errors
    /// Those of [`Library::resolve`]; [`Code::ModelMissing`] for a file that is not listed, whose content a hash would reveal;
    /// [`Code::Storage`] if a file cannot be read; [`Code::Cancelled`].
    pub fn verify(&self, spec: &str, cancel: &CancellationToken) -> Result<Verification, Error> {
        let (path, listed) = self.listed(spec)?;
        let model = listed.ok_or_else(|| {
            let message = format!("{} is not a model of the library", path.display());
            Error::new(Code::ModelMissing, message)
                .hint("add its folder with `tierbar models import FOLDER`, then try again")
        })?;
        let projector = self.own_projector(&model.path);
        checksums::verify(&model.parts, projector.as_ref(), model.keeper, cancel)
    }

    /// Moves a model's files to the Trash, or deletes them if there is no Trash and `permanently` is set. Its projector goes with it,
    /// unless another model uses it. `in_use` lists the loaded files. Returns whether all are in the Trash, rather than deleted.
    ///
    /// # Errors
    /// Those of [`Library::resolve`]; [`Code::NotOurs`] with how to delete it in its own app; [`Code::ModelInUse`];
    /// [`Code::Storage`] if it cannot be removed.
    pub fn remove(&self, spec: &str, permanently: bool, in_use: &[PathBuf]) -> Result<bool, Error> {
        let model = self.found(spec)?;
        let projector = self.own_projector(&model.path);
        trash::remove(&model, projector.as_deref(), permanently, in_use)
    }

    /// Returns the model's projector if it is in the models folder and serves no other model.
    fn own_projector(&self, model: &Path) -> Option<PathBuf> {
        let entries = self.scan().entries;
        let (own, others): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(|entry| entry.path == model);
        let own = own.into_iter().next()?;
        let origin = own.record.as_ref().and_then(projector::origin);
        // A file that is only in the way is not its projector.
        let is_its = |found: &Projector| {
            found.account.is_ok() || (origin.is_some() && found.origin == origin)
        };
        let path = own.projector.filter(is_its)?.path;
        let uses = |entry: &Entry| {
            let other = entry.projector.as_ref();
            other.is_some_and(|other| other.path == path)
        };
        let is_ours = inventory::keeper_of(&self.options, &path) == Keeper::Tierbar;
        (is_ours && !others.iter().any(uses)).then_some(path)
    }

    fn found(&self, spec: &str) -> Result<ModelFiles, Error> {
        match self.listed(spec)? {
            (_, Some(model)) => Ok(model),
            (path, None) => {
                files::unlisted_model(&path, inventory::keeper_of(&self.options, &path))
            }
        }
    }

    /// Returns the path that a spec names, and its model, if it is listed.
    fn listed(&self, spec: &str) -> Result<(PathBuf, Option<ModelFiles>), Error> {
        let inventory = self.inventory();
        let path = resolve::resolve(&self.options.models_dir, spec, || inventory.clone())?;
        // The same file may be named by way of another folder.
        let real = path.canonicalize().ok();
        let is_it =
            |part: &PathBuf| *part == path || (real.is_some() && part.canonicalize().ok() == real);
        let listed = inventory
            .models
            .into_iter()
            .find(|model| model.parts.iter().any(is_it));
        Ok((path, listed))
    }
}

fn not_found(message: String) -> Error {
    Error::new(Code::ModelMissing, message)
}

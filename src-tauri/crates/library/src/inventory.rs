//! Which models there are: every place looked through, files of one model put together, each file counted once.
//! Reads names, sizes and times, no header.

use crate::{
    LibraryOptions,
    files::{File, ModelFiles, group_by_model, to_model_files},
    folder::{FolderContents, Link, file_name, is_hidden, is_in_cloud, refusal, walk},
    headers::{Version, stamp},
    name, other_apps, projector, records,
};
use std::{
    collections::{HashMap, HashSet},
    ffi::OsStr,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};
use tierbar_core::{Code, Error, ModelId, fit::Keeper};
use tierbar_nofollow::reason;

/// Folders below the models folder, and below one that was added, that are looked into.
const OWN_DEPTH: usize = 1;
const ADDED_DEPTH: usize = 4;
/// Entries that are read of one place.
pub(crate) const MOST: usize = 20_000;

#[derive(Debug, Clone, Default)]
pub(crate) struct Inventory {
    /// Those of the models folder first, then in the order of [`Keeper`].
    pub(crate) models: Vec<ModelFiles>,
    /// The files named like a media projector.
    pub(crate) projectors: Vec<(PathBuf, Version)>,
    /// Models of other apps with the projectors that their manifests name.
    pub(crate) layers: Vec<(PathBuf, PathBuf)>,
    /// Every folder that was read.
    pub(crate) folders: Vec<PathBuf>,
    pub(crate) links: Vec<Link>,
    pub(crate) notices: Vec<String>,
    /// Why the models folder could not be read.
    pub(crate) own: Option<Error>,
}

impl Inventory {
    /// Returns the model with this ID or file name, the first of several. IDs take precedence.
    pub(crate) fn find(&self, spec: &str) -> Option<&ModelFiles> {
        let by_id = self.models.iter().find(|model| model.id.as_str() == spec);
        by_id.or_else(|| self.models.iter().find(|model| model.is_named(spec)))
    }
}

/// Who keeps a file that is not listed, such as one that has a second name, or that is named through a link.
pub(crate) fn keeper_of(options: &LibraryOptions, path: &Path) -> Keeper {
    let mut taking = InventoryBuilder::new(options);
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    let own = taking.own.as_ref();
    let below = own.and_then(|own| Some(folder.as_ref()?.strip_prefix(own).ok()?.to_owned()));
    let is_own = below.is_some_and(|below| {
        let name = path.file_name().unwrap_or_default();
        is_model(name) && !below.iter().chain([name]).any(is_hidden)
    });
    taking.keeper(
        path,
        if is_own {
            Keeper::Tierbar
        } else {
            Keeper::Folder
        },
    )
}

pub(crate) fn take(options: &LibraryOptions) -> Inventory {
    let mut taking = InventoryBuilder::new(options);
    match walk(&options.models_dir, OWN_DEPTH, MOST, is_model) {
        Ok(walked) => taking.add(walked, &options.models_dir, Keeper::Tierbar),
        Err(error) => taking.inventory.own = Some(unreadable(&options.models_dir, &error)),
    }
    for folder in &options.folders {
        match walk(folder, ADDED_DEPTH, MOST, is_model) {
            Ok(walked) => taking.add(walked, folder, Keeper::Folder),
            Err(error) => taking.inventory.notices.push(format!(
                "The folder {} cannot be read, so its models are not listed: {}. Connect its volume or \
                 download it from iCloud, or remove it from `library.folders`.",
                folder.display(),
                reason(&error)
            )),
        }
    }
    if options.other_apps {
        for folder in &options.apps.lm_studio {
            match walk(folder, ADDED_DEPTH, MOST, is_model) {
                Ok(walked) => taking.add(walked, folder, Keeper::LmStudio),
                Err(error) => taking.note_unreadable(refusal(folder, &error)),
            }
        }
        for folder in &options.apps.ollama {
            let (manifests, models) = other_apps::ollama(folder, MOST);
            taking.note(manifests, folder);
            for model in models {
                let layer = model.projector.map(|layer| (model.file.clone(), layer));
                taking.inventory.layers.extend(layer);
                taking.add_file(model.file, model.name, Keeper::Ollama);
            }
        }
        for folder in &options.apps.hugging_face {
            let kept = other_apps::hugging_face(folder, MOST, is_model);
            taking.add(kept, folder, Keeper::HuggingFace);
        }
    }
    taking.done()
}

fn unreadable(folder: &Path, error: &std::io::Error) -> Error {
    Error::new(
        Code::Storage,
        format!(
            "the models folder {} cannot be read: {}",
            folder.display(),
            reason(error)
        ),
    )
    .hint(
        "connect its volume, download it from iCloud or create it, or set `models_dir` to the folder of your models",
    )
}

/// Unfinished downloads end in something else than `.gguf`.
pub(crate) fn is_model(name: &OsStr) -> bool {
    name::without_extension(&name.to_string_lossy()).is_some()
}

/// Whether it can be read without a download from iCloud, and without waiting: opening a pipe would block.
pub(crate) fn is_here(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && !is_in_cloud(&metadata))
}

/// aria2 gives a file its whole size at once, and keeps what is to come in another until all has.
fn is_preallocated(path: &Path) -> bool {
    let mut control = path.as_os_str().to_owned();
    control.push(".aria2");
    Path::new(&control).exists()
}

#[derive(Debug)]
struct InventoryBuilder<'a> {
    options: &'a LibraryOptions,
    /// Other apps' folders as they really are.
    apps: Vec<(Keeper, PathBuf)>,
    own: Option<PathBuf>,
    keepers: HashMap<PathBuf, Keeper>,
    files: Vec<File>,
    /// Files whose content is in iCloud only: reading a header would download it.
    in_cloud: Vec<PathBuf>,
    inventory: Inventory,
}

impl<'a> InventoryBuilder<'a> {
    fn new(options: &'a LibraryOptions) -> Self {
        let apps = options.apps.all();
        let real = |(keeper, path): (_, &PathBuf)| Some((keeper, path.canonicalize().ok()?));
        Self {
            options,
            apps: apps.filter_map(real).collect(),
            own: options.models_dir.canonicalize().ok(),
            keepers: HashMap::new(),
            files: Vec::new(),
            in_cloud: Vec::new(),
            inventory: Inventory::default(),
        }
    }

    /// Notes what was read of a place, and returns its files.
    fn note(&mut self, walked: FolderContents, folder: &Path) -> Vec<PathBuf> {
        if walked.cut {
            self.inventory.notices.push(format!(
                "{} contains more than {MOST} files, so only the first of them are listed. Add the folder with the \
                 models instead.",
                folder.display()
            ));
        }
        self.note_unreadable(walked.unreadable);
        self.inventory.folders.extend(walked.folders);
        self.inventory.links.extend(walked.links);
        walked.files
    }

    fn note_unreadable(&mut self, folders: impl IntoIterator<Item = (PathBuf, String)>) {
        let notices = folders.into_iter().map(|(folder, reason)| {
            format!(
                "{} cannot be read, so models in it are not listed: {reason}.",
                folder.display()
            )
        });
        self.inventory.notices.extend(notices);
    }

    fn add(&mut self, walked: FolderContents, folder: &Path, found_in: Keeper) {
        for path in self.note(walked, folder) {
            let keeper = self.keeper(&path, found_in);
            let name = file_name(&path);
            self.add_file(path, name, keeper);
        }
    }

    fn add_file(&mut self, path: PathBuf, name: String, keeper: Keeper) {
        let metadata = match fs::metadata(&path) {
            Ok(metadata) => metadata,
            // Unless it is gone by now.
            Err(error) => return self.note_unreadable(refusal(&path, &error)),
        };
        // Pipes and devices are not models.
        if !metadata.is_file() || is_preallocated(&path) {
            return;
        }
        if is_in_cloud(&metadata) {
            return self.in_cloud.push(path);
        }
        if keeper != Keeper::Ollama && projector::is_named(&path) {
            let version = vec![stamp(&metadata)];
            self.inventory.projectors.push((path, version));
            return;
        }
        self.files.push(File {
            path,
            name,
            keeper,
            metadata,
        });
    }

    /// Returns the owner of the file, by the real path of its folder. Downloaded files are ours in any folder.
    fn keeper(&mut self, path: &Path, found_in: Keeper) -> Keeper {
        let Some(folder) = path.parent() else {
            return found_in;
        };
        let keeper = *(self.keepers.entry(folder.to_owned())).or_insert_with(|| {
            let Ok(real) = folder.canonicalize() else {
                return found_in;
            };
            let is_own = || self.own.as_ref().is_some_and(|own| real.starts_with(own));
            match self.apps.iter().find(|(_, app)| real.starts_with(app)) {
                Some((app, _)) => *app,
                None if found_in == Keeper::Tierbar && !is_own() => Keeper::Folder,
                None => found_in,
            }
        });
        if found_in == Keeper::Tierbar && keeper != Keeper::Tierbar && records::is_fetched(path) {
            return Keeper::Tierbar;
        }
        keeper
    }

    fn done(mut self) -> Inventory {
        let mut models: Vec<ModelFiles> = Vec::new();
        let mut seen: HashMap<(u64, u64), usize> = HashMap::new();
        for group in group_by_model(std::mem::take(&mut self.files)) {
            let Some(first) = group.first() else { continue };
            let identity = (first.metadata.dev(), first.metadata.ino());
            let found = to_model_files(group);
            if let Some(known) = seen.get(&identity) {
                let known = &mut models[*known];
                known.also.extend([found.id.0, found.name]);
            } else {
                seen.insert(identity, models.len());
                models.push(found);
            }
        }
        self.inventory.notices.extend(cloud_notice(&self.in_cloud));
        name_apart(&mut models, &self.options.models_dir);
        self.inventory.models = models;
        self.inventory
    }
}

/// Says which models are not listed because their files are in iCloud only.
fn cloud_notice(files: &[PathBuf]) -> Option<String> {
    let first = file_name(files.first()?);
    Some(match files.len() - 1 {
        0 => format!("{first} is in iCloud only, so it is not listed. Download it in the Finder."),
        others => format!(
            "{first} and {others} more model files are in iCloud only, so they are not listed. Download them in the Finder."
        ),
    })
}

/// Gives each model an id of its own: of two alike, the first keeps it.
fn name_apart(models: &mut [ModelFiles], models_dir: &Path) {
    let mut taken = HashSet::new();
    for model in models {
        let plain = model.id.0.clone();
        if taken.insert(plain.clone()) {
            continue;
        }
        model.also.push(plain.clone());
        let place = match model.keeper {
            Keeper::LmStudio => "lm-studio".to_owned(),
            Keeper::Ollama => "ollama".to_owned(),
            Keeper::HuggingFace => "hugging-face".to_owned(),
            Keeper::Tierbar | Keeper::Folder => model
                .path
                .parent()
                .filter(|folder| *folder != models_dir)
                .map(file_name)
                .unwrap_or_default(),
        };
        let named = format!("{plain}@{place}");
        let mut id = named.clone();
        let mut number = 2;
        while !taken.insert(id.clone()) {
            id = format!("{named}-{number}");
            number += 1;
        }
        model.id = ModelId(id);
    }
}

#[cfg(test)]
mod tests;

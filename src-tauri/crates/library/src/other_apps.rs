//! Models of other apps: LM Studio, Ollama and the Hugging Face cache. They are used in place and never changed.
//!
//! Layouts: LM Studio's `models/PUBLISHER/REPOSITORY/FILE.gguf`. Ollama's `manifests/HOST/NAMESPACE/MODEL/TAG`, JSON
//! whose layer of type `application/vnd.ollama.image.model` names the file in `blobs/` by its sha256, and one of type
//! `….projector` that of the media projector. The cache of
//! `huggingface_hub`: `models--OWNER--REPOSITORY/snapshots/REVISION/FILE`, links into `blobs/`.

use crate::folder::{FolderContents, file_name, look_at, walk};
use serde::Deserialize;
use std::{
    ffi::{OsStr, OsString},
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};
use tierbar_core::fit::Keeper;

/// Manifests and settings are a few kilobytes.
const MAX_SMALL_FILE: u64 = 256 << 10;
const OLLAMA_MODEL: &str = "application/vnd.ollama.image.model";
const OLLAMA_PROJECTOR: &str = "application/vnd.ollama.image.projector";
/// The models folder of Ollama's service on Linux.
const OLLAMA_SERVICE: &str = "/usr/share/ollama/.ollama/models";

/// The model folders of other apps. They may not exist.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AppFolders {
    pub lm_studio: Vec<PathBuf>,
    pub ollama: Vec<PathBuf>,
    pub hugging_face: Vec<PathBuf>,
}

impl AppFolders {
    /// Returns the folders of the user with this home folder, and those set in the environment.
    pub fn of_user(home: &Path) -> Self {
        Self::by(home, |name| std::env::var_os(name))
    }

    fn by(home: &Path, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let set = |name: &str| {
            let path = PathBuf::from(variable(name)?);
            // A `~` that no shell has seen, as `huggingface_hub` reads it.
            let rest = path.strip_prefix("~").map(|rest| home.join(rest));
            rest.ok().or_else(|| path.is_absolute().then_some(path))
        };
        let ollama = set("OLLAMA_MODELS").unwrap_or_else(|| home.join(".ollama/models"));
        let cache = || set("XDG_CACHE_HOME").unwrap_or_else(|| home.join(".cache"));
        let hub = set("HF_HUB_CACHE")
            .or_else(|| set("HUGGINGFACE_HUB_CACHE"))
            .or_else(|| Some(set("HF_HOME")?.join("hub")))
            .unwrap_or_else(|| cache().join("huggingface/hub"));
        Self {
            lm_studio: lm_studio(home),
            ollama: vec![ollama, OLLAMA_SERVICE.into()],
            hugging_face: vec![hub],
        }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (Keeper, &PathBuf)> {
        let lm_studio = self.lm_studio.iter().map(|path| (Keeper::LmStudio, path));
        let ollama = self.ollama.iter().map(|path| (Keeper::Ollama, path));
        let hugging_face = self
            .hugging_face
            .iter()
            .map(|path| (Keeper::HuggingFace, path));
        lm_studio.chain(ollama).chain(hugging_face)
    }
}

/// `.lmstudio-home-pointer` in the home folder names another place than `.lmstudio`, `settings.json` there another
/// folder than `models`; before 2025 all of it was in `.cache/lm-studio`.
fn lm_studio(home: &Path) -> Vec<PathBuf> {
    let absolute = |text: &str| Some(PathBuf::from(text.trim())).filter(|path| path.is_absolute());
    let pointed = read_small(&home.join(".lmstudio-home-pointer"))
        .and_then(|text| absolute(&String::from_utf8(text).ok()?));
    let mut homes = vec![home.join(".lmstudio"), home.join(".cache/lm-studio")];
    homes.extend(pointed);
    let mut folders = Vec::new();
    for home in homes {
        let settings: Option<LmStudioSettings> = read_small(&home.join("settings.json"))
            .and_then(|text| serde_json::from_slice(&text).ok());
        folders.push(home.join("models"));
        folders.extend(settings.and_then(|settings| absolute(&settings.downloads_folder?)));
    }
    folders.sort();
    folders.dedup();
    folders
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LmStudioSettings {
    downloads_folder: Option<String>,
}

/// A model of Ollama's.
#[derive(Debug)]
pub(crate) struct OllamaModel {
    pub(crate) file: PathBuf,
    /// Such as `gemma3:1b`.
    pub(crate) name: String,
    pub(crate) projector: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Manifest {
    #[serde(default)]
    layers: Vec<Layer>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Layer {
    media_type: String,
    digest: String,
}

/// Returns the models of an Ollama folder, and its manifests.
pub(crate) fn ollama(models: &Path, limit: usize) -> (FolderContents, Vec<OllamaModel>) {
    let mut contents = FolderContents::default();
    let (manifests, blobs) = (models.join("manifests"), models.join("blobs"));
    let walked = look_at(models).and_then(|_| walk(&manifests, 3, limit, |_| true));
    let Some(walked) = contents.take(models, walked) else {
        return (contents, Vec::new());
    };
    contents.add(walked);
    if contents.take(&blobs, look_at(&blobs)).is_none() {
        return (contents, Vec::new());
    }
    let model = |path: &PathBuf| {
        let name = ollama_name(path.strip_prefix(&manifests).ok()?)?;
        let manifest: Manifest = serde_json::from_slice(&read_small(path)?).ok()?;
        let blob = |kind| Some(blobs.join(ollama_blob(&manifest, kind)?));
        Some(OllamaModel {
            file: blob(OLLAMA_MODEL).filter(|blob| blob.is_file())?,
            name,
            projector: blob(OLLAMA_PROJECTOR),
        })
    };
    let found = contents.files.iter().filter_map(model).collect();
    (contents, found)
}

/// Returns the name as Ollama shows it, without the default host and namespace.
fn ollama_name(manifest: &Path) -> Option<String> {
    let parts: Vec<&str> = manifest
        .iter()
        .map(|part| part.to_str())
        .collect::<Option<_>>()?;
    Some(match *parts.as_slice() {
        ["registry.ollama.ai", "library", model, tag] => format!("{model}:{tag}"),
        ["registry.ollama.ai", namespace, model, tag] => format!("{namespace}/{model}:{tag}"),
        [host, namespace, model, tag] => format!("{host}/{namespace}/{model}:{tag}"),
        _ => return None,
    })
}

/// Returns the name in `blobs/` of the first layer of a kind, which is always a hash.
fn ollama_blob(manifest: &Manifest, kind: &str) -> Option<String> {
    let mut layers = manifest.layers.iter();
    let layer = layers.find(|layer| layer.media_type == kind)?;
    let hash = layer.digest.strip_prefix("sha256:")?;
    is_hex(hash, 64).then(|| format!("sha256-{hash}"))
}

/// Returns the model files of a Hugging Face cache, the newest revision of a repository first.
pub(crate) fn hugging_face(
    hub: &Path,
    limit: usize,
    wanted: impl Fn(&OsStr) -> bool,
) -> FolderContents {
    let mut kept = FolderContents::default();
    // Three folders deep: a repository, its `snapshots`, a revision. Their files are read below, newest first.
    let Some(mut repositories) = kept.take(hub, paths_in(hub, limit)) else {
        return kept;
    };
    kept.folders.push(hub.to_owned());
    repositories.retain(|path| file_name(path).starts_with("models--"));
    repositories.sort();
    let mut left = limit;
    for repository in repositories {
        if kept.take(&repository, look_at(&repository)).is_none() {
            continue;
        }
        let snapshots = repository.join("snapshots");
        let main = read_small(&repository.join("refs/main"));
        let main = main
            .and_then(|text| String::from_utf8(text).ok())
            .unwrap_or_default();
        kept.folders.push(repository);
        let Some(mut revisions) = kept.take(&snapshots, paths_in(&snapshots, left)) else {
            continue;
        };
        kept.folders.push(snapshots);
        revisions.retain(|path| path.is_dir());
        revisions.sort_by_key(|path| (file_name(path) != main.trim(), path.clone()));
        for revision in revisions {
            // A repository may have a folder for each quant.
            let walked = walk(&revision, 2, left, &wanted);
            if let Some(walked) = kept.take(&revision, walked) {
                left = left.saturating_sub(walked.files.len() + 1);
                kept.add(walked);
            }
        }
    }
    kept
}

/// Returns the paths of a folder's entries, at most `limit`.
fn paths_in(folder: &Path, limit: usize) -> io::Result<Vec<PathBuf>> {
    look_at(folder)?;
    let entries = fs::read_dir(folder)?.take(limit);
    entries.map(|entry| Ok(entry?.path())).collect()
}

/// Returns the sha256 in the name of a file of Ollama or the Hugging Face cache, following links.
pub(crate) fn hash_in_name(path: &Path) -> Option<String> {
    let real = path.canonicalize().ok()?;
    let name = real.file_name()?.to_str()?;
    let hash = name.strip_prefix("sha256-").unwrap_or(name);
    is_hex(hash, 64).then(|| hash.to_owned())
}

/// Returns whether the text is a hash of so many lower-case digits.
pub(crate) fn is_hex(text: &str, length: usize) -> bool {
    let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    text.len() == length && text.bytes().all(is_digit)
}

/// Returns the contents of a regular file, unless it is too large.
pub(crate) fn read_small(path: &Path) -> Option<Vec<u8>> {
    // Checked before it is opened: opening a pipe would block.
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut content = Vec::new();
    let limit = MAX_SMALL_FILE + 1;
    File::open(path)
        .ok()?
        .take(limit)
        .read_to_end(&mut content)
        .ok()?;
    (content.len() < limit as usize).then_some(content)
}

#[cfg(test)]
mod tests;

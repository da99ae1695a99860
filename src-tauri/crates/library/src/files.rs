//! The files of a model: one, or the parts of a split model.

use crate::{
    folder::file_name,
    headers::{self, Version, stamp},
    name, not_found,
};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};
use tierbar_core::{Code, Error, ModelId, fit::Keeper};
use tierbar_gguf::{Split, split_of};

#[derive(Debug, Clone)]
pub(crate) struct ModelFiles {
    pub(crate) id: ModelId,
    /// Other names for the same file.
    pub(crate) also: Vec<String>,
    /// The file name, or the model's name in its app.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    /// The existing parts, in order.
    pub(crate) parts: Vec<PathBuf>,
    /// Why the set of parts is incomplete.
    pub(crate) incomplete: Option<Error>,
    pub(crate) keeper: Keeper,
    pub(crate) version: Version,
}

impl ModelFiles {
    pub(crate) fn size_bytes(&self) -> u64 {
        self.version.iter().map(|file| file.size).sum()
    }

    pub(crate) fn is_named(&self, spec: &str) -> bool {
        self.name == spec || self.also.iter().any(|name| name == spec)
    }
}

#[derive(Debug)]
pub(crate) struct File {
    pub(crate) path: PathBuf,
    pub(crate) name: String,
    pub(crate) keeper: Keeper,
    pub(crate) metadata: fs::Metadata,
}

impl File {
    /// Returns which part of a model it is. Ollama does not keep names.
    fn split(&self) -> Option<Split> {
        split_of(&self.name).filter(|_| self.keeper != Keeper::Ollama)
    }
}

/// Groups files by model, in the order of the parts.
pub(crate) fn group_by_model(files: Vec<File>) -> Vec<Vec<File>> {
    let mut groups: Vec<BTreeMap<u16, File>> = Vec::new();
    let mut splits: HashMap<(PathBuf, String, u16), usize> = HashMap::new();
    for file in files {
        let Some(split) = file.split() else {
            groups.push(BTreeMap::from([(1, file)]));
            continue;
        };
        let folder = file.path.parent().map(Path::to_owned).unwrap_or_default();
        let group = *splits
            .entry((folder, split.prefix, split.count))
            .or_insert_with(|| {
                groups.push(BTreeMap::new());
                groups.len() - 1
            });
        groups[group].insert(split.number, file);
    }
    let in_order = |group: BTreeMap<u16, File>| group.into_values().collect();
    groups.into_iter().map(in_order).collect()
}

/// `files`: one, or the parts of one model.
pub(crate) fn to_model_files(files: Vec<File>) -> ModelFiles {
    let File {
        path, name, keeper, ..
    } = &files[0];
    let split = files[0].split();
    let id = match (&split, keeper) {
        (Some(split), _) => split.prefix.clone(),
        // An id has no `/`: it is part of addresses.
        (None, Keeper::Ollama) => name.replace('/', "-"),
        (None, _) => name::model_id(name).0,
    };
    ModelFiles {
        id: ModelId(id),
        also: Vec::new(),
        name: name.clone(),
        path: path.clone(),
        incomplete: split.and_then(|split| missing_parts_error(&split, &files)),
        keeper: *keeper,
        version: files.iter().map(|file| stamp(&file.metadata)).collect(),
        parts: files.into_iter().map(|file| file.path).collect(),
    }
}

fn missing_parts_error(split: &Split, files: &[File]) -> Option<Error> {
    let there: HashSet<&str> = files.iter().map(|file| file.name.as_str()).collect();
    let absent = usize::from(split.count) - files.len();
    let first = split.parts().find(|part| !there.contains(part.as_str()))?;
    let others = match absent {
        1 => String::new(),
        more => format!(" and {} more", more - 1),
    };
    Some(
        Error::new(
            Code::ModelInvalid,
            format!(
                "{absent} of the {} parts of {} {} missing: {first}{others}",
                split.count,
                split.prefix,
                if absent == 1 { "is" } else { "are" }
            ),
        )
        .hint("put all parts in one folder, with their original names"),
    )
}

/// Every file of the model that the path belongs to: the path alone, unless its name is that of a part.
///
/// # Errors
/// [`Code::ModelInvalid`] if a part is missing.
pub(crate) fn parts_of(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let name = path.file_name().and_then(OsStr::to_str);
    let Some(split) = name.and_then(split_of) else {
        return Ok(vec![path.to_owned()]);
    };
    let folder = path.parent().unwrap_or(Path::new(""));
    let parts: Vec<PathBuf> = split.parts().map(|part| folder.join(part)).collect();
    match parts.iter().find(|part| !part.is_file()) {
        None => Ok(parts),
        Some(absent) => Err(not_found(format!(
            "the part {} of the model cannot be found",
            absent.display()
        ))
        .hint("put all parts in one folder, with their original names")),
    }
}

/// Returns a model that is not listed, because it is in another folder or listed under another name.
///
/// # Errors
/// As [`parts_of`]; [`Code::ModelMissing`] if it is gone.
pub(crate) fn unlisted_model(path: &Path, keeper: Keeper) -> Result<ModelFiles, Error> {
    let parts = parts_of(path)?;
    let version = headers::version(&parts)
        .ok_or_else(|| not_found(format!("the model {} is gone", path.display())))?;
    let name = file_name(path);
    Ok(ModelFiles {
        id: name::model_id(&name),
        also: Vec::new(),
        name,
        path: path.to_owned(),
        parts,
        incomplete: None,
        keeper,
        version,
    })
}

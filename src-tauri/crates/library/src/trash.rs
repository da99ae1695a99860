//! Deletes a model, by moving it to the Trash where there is one.

use crate::{files::ModelFiles, platform, records};
use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};
use tierbar_core::{Code, Error, fit::Keeper};

pub(crate) fn remove(
    model: &ModelFiles,
    projector: Option<&Path>,
    permanently: bool,
    in_use: &[PathBuf],
) -> Result<bool, Error> {
    check_removable(model)?;
    let loaded: Vec<_> = in_use.iter().filter_map(|path| identity(path)).collect();
    let used = |path: &PathBuf| identity(path).is_some_and(|file| loaded.contains(&file));
    if model.parts.iter().any(used) {
        return Err(Error::new(
            Code::ModelInUse,
            format!("{} is loaded and cannot be deleted", model.id),
        )
        .hint("unload the tier that uses it, then try again"));
    }
    let mut trashed = true;
    // The first part is removed last: without it, the rest could not be found.
    let parts = model.parts.iter().rev().map(PathBuf::as_path);
    for path in projector.into_iter().chain(parts) {
        trashed &= remove_file(path, permanently)?;
        if let Some(record) = records::record_path(path).filter(|record| record.exists()) {
            // A record without its file is harmless.
            let _ = remove_file(&record, permanently);
        }
    }
    Ok(trashed)
}

/// Returns `false` if the file was deleted permanently.
fn remove_file(path: &Path, permanently: bool) -> Result<bool, Error> {
    let shown = path.display();
    let Err(why) = platform::to_trash(path) else {
        return Ok(true);
    };
    if !permanently {
        return Err(Error::new(
            Code::Storage,
            format!("{shown} cannot be moved to the Trash: {why}"),
        )
        .hint("to delete it permanently, add `--permanently`, or `permanently=true` in the API"));
    }
    match fs::remove_file(path) {
        Ok(()) => Ok(false),
        Err(error) => Err(
            Error::new(Code::Storage, format!("{shown} cannot be deleted: {error}"))
                .hint("check that the folder is writable"),
        ),
    }
}

fn check_removable(model: &ModelFiles) -> Result<(), Error> {
    let (whose, how) = match model.keeper {
        Keeper::Tierbar => return Ok(()),
        Keeper::Folder => (
            "is outside the models folder",
            "delete the file where it is, or remove its folder from `library.folders`".to_owned(),
        ),
        Keeper::LmStudio => (
            "belongs to LM Studio",
            "delete it in LM Studio, under My Models".to_owned(),
        ),
        Keeper::Ollama => (
            "belongs to Ollama",
            format!("run `ollama rm {}`", model.name),
        ),
        Keeper::HuggingFace => (
            "belongs to the Hugging Face cache",
            "run `hf cache rm` with its repository".to_owned(),
        ),
    };
    let path = model.path.display();
    Err(Error::new(
        Code::NotOurs,
        format!("{path} {whose}, so Tierbar does not delete it"),
    )
    .hint(how))
}

/// Returns the device and the number of what is at the path.
pub(crate) fn identity(path: &Path) -> Option<(u64, u64)> {
    let file = fs::metadata(path).ok()?;
    Some((file.dev(), file.ino()))
}

//! Which file a name means.

use crate::{files::parts_of, inventory::Inventory, not_found};
use std::{
    collections::BTreeSet,
    fs,
    path::{Component, Path, PathBuf},
};
use tierbar_core::{Error, home::from_home};

/// A name this much alike is offered in place of one that does not exist (Jaro-Winkler, 0 to 1).
const ALIKE: f64 = 0.75;
const OFFERED: usize = 5;

pub(crate) fn resolve(
    folder: &Path,
    spec: &str,
    inventory: impl FnOnce() -> Inventory,
) -> Result<PathBuf, Error> {
    let spec = spec.trim();
    if spec.is_empty() {
        return Err(not_found("no model is chosen".to_owned()).hint(format!(
            "choose one of the models in {}, or a path",
            folder.display()
        )));
    }
    if let Some(path) = absolute(spec) {
        return of_path(path);
    }
    // A name never leads out of the folder: `..` is for absolute paths.
    if Path::new(spec)
        .components()
        .all(|part| matches!(part, Component::Normal(_)))
    {
        let inside = folder.join(spec);
        let named = [inside.clone(), folder.join(format!("{spec}.gguf"))];
        if let Some(path) = named.into_iter().find(|path| path.is_file()) {
            return Ok(first_part(path));
        }
    }
    let inventory = inventory();
    if let Some(model) = inventory.find(spec) {
        return Ok(model.path.clone());
    }
    if let Some(error) = inventory.own {
        return Err(error);
    }
    let hint = match similar_ids(spec, &inventory).as_slice() {
        [] => "the folder has no models: connect its volume if they are on another disk, put a .gguf file in it, or use a path"
            .to_owned(),
        names => format!("the library has {}", names.join(", ")),
    };
    Err(not_found(format!(
        "there is no model \"{spec}\" in {}",
        folder.display()
    ))
    .hint(hint))
}

/// A part that stands alone is reported by its reader.
fn first_part(path: PathBuf) -> PathBuf {
    let parts = parts_of(&path).unwrap_or_default();
    parts.into_iter().next().unwrap_or(path)
}

/// Returns the path of a spec that starts with `/` or `~`.
fn absolute(spec: &str) -> Option<PathBuf> {
    let path = from_home(spec, std::env::home_dir());
    path.is_absolute().then_some(path)
}

fn of_path(path: PathBuf) -> Result<PathBuf, Error> {
    let shown = path.display();
    match fs::metadata(&path) {
        Ok(file) if file.is_file() => Ok(first_part(path)),
        Ok(file) if file.is_dir() => Err(not_found(format!("{shown} is a folder, not a model"))
            .hint("use the path of a .gguf file in it")),
        Ok(_) => Err(not_found(format!("{shown} is not a file"))),
        Err(error) => Err(
            not_found(format!("the model {shown} cannot be found: {error}"))
                .hint("check the path, and that its volume is connected"),
        ),
    }
}

/// Returns the IDs most similar to `spec`, or the first IDs if none is similar.
fn similar_ids(spec: &str, inventory: &Inventory) -> Vec<String> {
    let wanted = spec.to_lowercase();
    let ids: BTreeSet<&str> = inventory
        .models
        .iter()
        .map(|model| model.id.as_str())
        .collect();
    let mut alike: Vec<(f64, &str)> = ids
        .iter()
        .map(|id| (strsim::jaro_winkler(&wanted, &id.to_lowercase()), *id))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .collect();
    alike.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    let mut names: Vec<&str> = alike.into_iter().map(|(_, id)| id).collect();
    if names.is_empty() {
        names.extend(ids);
    }
    names.into_iter().take(OFFERED).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;

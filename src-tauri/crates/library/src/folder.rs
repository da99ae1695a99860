//! Finding model files.

use crate::{missing, name};
use std::{
    ffi::OsStr,
    fs,
    path::{Component, Path, PathBuf},
};
use tierbar_core::{Code, Error, ModelId};

/// A name this much alike is offered in place of one that does not exist (Jaro-Winkler, 0 to 1).
const ALIKE: f64 = 0.75;
const OFFERED: usize = 5;

/// The folder's models, then those one folder below, each sorted by path.
///
/// # Errors
/// [`Code::Storage`] if the folder cannot be read. A folder below that cannot be read has none.
pub(crate) fn model_files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = entries(folder).map_err(|error| {
        Error::new(
            Code::Storage,
            format!(
                "the models folder {} cannot be read: {error}",
                folder.display()
            ),
        )
        .hint("make the folder, or set `models_dir` to the one that holds your models")
    })?;
    let below: Vec<PathBuf> = found.iter().filter(|path| path.is_dir()).cloned().collect();
    for folder in below {
        found.extend(entries(&folder).unwrap_or_default());
    }
    found.retain(|path| is_model(path));
    Ok(found)
}

/// All but hidden ones, sorted.
fn entries(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if !file_name(&path).starts_with('.') {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// Unfinished downloads end in something else than `.gguf`.
fn is_model(path: &Path) -> bool {
    let name = file_name(path);
    let projector = name.to_ascii_lowercase().starts_with("mmproj-");
    name::without_extension(&name).is_some() && !projector && path.is_file()
}

pub(crate) fn id_of(path: &Path) -> ModelId {
    name::model_id(&file_name(path))
}

fn file_name(path: &Path) -> std::borrow::Cow<'_, str> {
    path.file_name()
        .map(OsStr::to_string_lossy)
        .unwrap_or_default()
}

pub(crate) fn resolve(folder: &Path, spec: &str) -> Result<PathBuf, Error> {
    let spec = spec.trim();
    if spec.is_empty() {
        return Err(missing("no model is chosen".to_owned()).hint(format!(
            "name one of the models in {}, or a path",
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
            return Ok(path);
        }
    }
    let files = model_files(folder)?;
    let named = |path: &&PathBuf| id_of(path).as_str() == spec || file_name(path) == spec;
    if let Some(path) = files.iter().find(named) {
        return Ok(path.clone());
    }
    let hint = match offered(spec, &files).as_slice() {
        [] => {
            "the folder has no models: put a .gguf file into it, or name one by its path".to_owned()
        }
        names => format!("the folder has {}", names.join(", ")),
    };
    Err(missing(format!(
        "there is no model \"{spec}\" in {}",
        folder.display()
    ))
    .hint(hint))
}

/// The path that the spec spells from `/` or from `~`.
fn absolute(spec: &str) -> Option<PathBuf> {
    if let Some(rest) = spec.strip_prefix('~')
        && (rest.is_empty() || rest.starts_with('/'))
    {
        return Some(std::env::home_dir()?.join(rest.trim_start_matches('/')));
    }
    Path::new(spec).is_absolute().then(|| PathBuf::from(spec))
}

fn of_path(path: PathBuf) -> Result<PathBuf, Error> {
    let shown = path.display();
    match fs::metadata(&path) {
        Ok(file) if file.is_file() => Ok(path),
        Ok(file) if file.is_dir() => {
            Err(missing(format!("{shown} is a folder, not a model"))
                .hint("name a .gguf file in it"))
        }
        Ok(_) => Err(missing(format!("{shown} is not a file"))),
        Err(error) => Err(
            missing(format!("the model {shown} cannot be found: {error}"))
                .hint("check the path; if it is on another volume, connect that first"),
        ),
    }
}

/// The names most like `spec`, nearest first; if none is like it, the first of all.
fn offered(spec: &str, files: &[PathBuf]) -> Vec<String> {
    let wanted = spec.to_lowercase();
    let mut names: Vec<(f64, String)> = files
        .iter()
        .map(|path| {
            let id = id_of(path).0;
            (strsim::jaro_winkler(&wanted, &id.to_lowercase()), id)
        })
        .collect();
    names.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let alike = names
        .iter()
        .take_while(|(likeness, _)| *likeness >= ALIKE)
        .count();
    if alike == 0 {
        names.sort_by(|a, b| a.1.cmp(&b.1));
    }
    let count = if alike == 0 { names.len() } else { alike };
    names
        .into_iter()
        .take(count.min(OFFERED))
        .map(|(_, name)| name)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        folder
    }

    fn names(folder: &Path) -> Vec<String> {
        let relative = |path: &PathBuf| {
            path.strip_prefix(folder)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned()
        };
        model_files(folder).unwrap().iter().map(relative).collect()
    }

    #[test]
    fn models_are_found_one_folder_deep_and_nothing_else_is() {
        let folder = folder(&[
            "b.gguf",
            "a.GGUF",
            "sub/c.gguf",
            "sub/deeper/d.gguf",
            "mmproj-BF16.gguf",
            "sub/mmproj-f16.gguf",
            ".hidden.gguf",
            ".cache/e.gguf",
            "f.gguf.part",
            "g.gguf.download",
            "notes.txt",
            ".gguf",
        ]);
        fs::create_dir(folder.path().join("folder.gguf")).unwrap();
        std::os::unix::fs::symlink("nowhere", folder.path().join("broken.gguf")).unwrap();
        assert_eq!(names(folder.path()), ["a.GGUF", "b.gguf", "sub/c.gguf"]);
    }

    #[test]
    fn a_link_to_a_model_is_a_model() {
        let elsewhere = folder(&["real.gguf"]);
        let folder = folder(&[]);
        std::os::unix::fs::symlink(
            elsewhere.path().join("real.gguf"),
            folder.path().join("link.gguf"),
        )
        .unwrap();
        assert_eq!(names(folder.path()), ["link.gguf"]);
    }

    #[test]
    fn a_folder_that_does_not_exist_is_told() {
        let error = model_files(Path::new("/nonexistent/models")).unwrap_err();
        assert_eq!(error.code, Code::Storage);
        assert!(error.message.contains("/nonexistent/models"), "{error}");
    }

    #[test]
    fn a_model_is_found_by_id_file_name_and_path() {
        let folder = folder(&["a.Q4_1.gguf", "sub/b.gguf"]);
        let at = |file: &str| folder.path().join(file);
        for (spec, file) in [
            ("a.Q4_1", "a.Q4_1.gguf"),
            (" a.Q4_1.gguf\n", "a.Q4_1.gguf"),
            ("b", "sub/b.gguf"),
            ("b.gguf", "sub/b.gguf"),
            ("sub/b", "sub/b.gguf"),
            ("sub/b.gguf", "sub/b.gguf"),
        ] {
            assert_eq!(resolve(folder.path(), spec), Ok(at(file)), "{spec:?}");
        }
        let absolute = at("sub/b.gguf");
        assert_eq!(
            resolve(Path::new("/elsewhere"), absolute.to_str().unwrap()),
            Ok(absolute)
        );
    }

    #[test]
    fn of_two_models_with_one_id_the_higher_one_is_meant() {
        let folder = folder(&["a/m.gguf", "m.gguf", "z/m.gguf", "a/n.gguf", "z/n.gguf"]);
        assert_eq!(
            resolve(folder.path(), "m"),
            Ok(folder.path().join("m.gguf"))
        );
        assert_eq!(
            resolve(folder.path(), "n"),
            Ok(folder.path().join("a/n.gguf"))
        );
    }

    #[test]
    fn a_tilde_is_the_home_folder() {
        let home = std::env::home_dir().unwrap();
        assert_eq!(
            absolute("~/models/a.gguf"),
            Some(home.join("models/a.gguf"))
        );
        assert_eq!(absolute("~"), Some(home));
        assert_eq!(absolute("~someone/a.gguf"), None);
        assert_eq!(absolute("a~b"), None);
    }

    #[test]
    fn a_misspelt_name_is_answered_with_the_nearest_ones() {
        let folder = folder(&[
            "SmolLM2-135M-Instruct.Q4_1.gguf",
            "gemma-3-270m-q4_k_m.gguf",
            "zephyr.gguf",
        ]);
        let error = resolve(folder.path(), "smollm2-135M-instruct").unwrap_err();
        assert_eq!(error.code, Code::ModelMissing);
        assert!(
            error.message.contains(folder.path().to_str().unwrap()),
            "{error}"
        );
        assert_eq!(
            error.hint.unwrap(),
            "the folder has SmolLM2-135M-Instruct.Q4_1"
        );
        let hint = resolve(folder.path(), "llama-70b")
            .unwrap_err()
            .hint
            .unwrap();
        assert_eq!(
            hint,
            "the folder has SmolLM2-135M-Instruct.Q4_1, gemma-3-270m-q4_k_m, zephyr"
        );
        let error = resolve(self::folder(&[]).path(), "llama").unwrap_err();
        assert!(error.hint.unwrap().starts_with("the folder has no models"));
    }

    #[test]
    fn names_that_lead_out_of_the_folder_are_not_followed() {
        let outer = folder(&["secret.gguf", "models/a.gguf"]);
        let models = outer.path().join("models");
        for spec in [
            "../secret.gguf",
            "../secret",
            "a/../../secret.gguf",
            "./../secret.gguf",
            "..",
            ".",
        ] {
            assert_eq!(
                resolve(&models, spec).unwrap_err().code,
                Code::ModelMissing,
                "{spec}"
            );
        }
    }

    #[test]
    fn a_path_that_is_no_file_is_told_apart() {
        let folder = folder(&["a.gguf"]);
        let resolve = |path: &Path| resolve(Path::new("/m"), path.to_str().unwrap()).unwrap_err();
        assert!(
            resolve(folder.path())
                .message
                .ends_with("is a folder, not a model")
        );
        assert!(
            resolve(&folder.path().join("b.gguf"))
                .message
                .contains("cannot be found")
        );
        assert!(
            resolve(Path::new("/dev/null"))
                .message
                .ends_with("is not a file")
        );
        assert!(
            super::resolve(Path::new("/m"), "  ")
                .unwrap_err()
                .message
                .contains("no model is chosen")
        );
    }
}

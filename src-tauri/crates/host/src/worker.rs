//! The programs that the host runs.

use std::path::{Path, PathBuf};
use tierbar_core::{Code, Error};

const WORKER: &str = "tierbar-worker";
const PROCESS_GUARD: &str = "tierbar-guard";
const EXTRACT: &str = "tierbar-extract";
const SANDBOX: &str = "tierbar-sandbox";

/// Returns the worker: the given path, or else `TIERBAR_WORKER`, or else the one beside this program or in its bundle.
///
/// # Errors
/// `Internal` with the path that was expected.
pub(crate) fn find(given: Option<PathBuf>) -> Result<PathBuf, Error> {
    let named = given.or_else(|| crate::folder::path_variable("TIERBAR_WORKER"));
    find_program(WORKER, named, "TIERBAR_WORKER")
}

/// Returns the process guard, found like the worker.
///
/// # Errors
/// Those of [`find`].
pub(crate) fn process_guard() -> Result<PathBuf, Error> {
    find_program(
        PROCESS_GUARD,
        crate::folder::path_variable("TIERBAR_GUARD"),
        "TIERBAR_GUARD",
    )
}

/// Returns the program that reads documents, found like the worker.
///
/// # Errors
/// Those of [`find`].
pub(crate) fn extract() -> Result<PathBuf, Error> {
    find_program(
        EXTRACT,
        crate::folder::path_variable("TIERBAR_EXTRACT"),
        "TIERBAR_EXTRACT",
    )
}

/// Returns the sandbox for an agent's commands, found like the worker.
///
/// # Errors
/// Those of [`find`].
pub(crate) fn sandbox() -> Result<PathBuf, Error> {
    find_program(
        SANDBOX,
        crate::folder::path_variable("TIERBAR_SANDBOX"),
        "TIERBAR_SANDBOX",
    )
}

fn find_program(name: &str, named: Option<PathBuf>, variable: &str) -> Result<PathBuf, Error> {
    let candidates = named.map_or_else(
        || candidate_paths(name, std::env::current_exe().ok().as_deref()),
        |path| vec![path],
    );
    if let Some(found) = candidates.iter().find(|path| path.is_file()) {
        return std::path::absolute(found)
            .map_err(|error| Error::new(Code::Internal, format!("{}: {error}", found.display())));
    }
    let looked: Vec<_> = candidates
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let message = format!("cannot find the program {name} at {}", looked.join(" and "));
    Err(Error::new(Code::Internal, message).hint(format!(
        "build it with `make build`, or set {variable} to its path"
    )))
}

fn candidate_paths(name: &str, program: Option<&Path>) -> Vec<PathBuf> {
    // A program may be a link, such as one in /usr/local/bin; the others are beside its target.
    let real = program.map(|path| path.canonicalize().unwrap_or_else(|_| path.to_owned()));
    let Some(folder) = real.as_deref().and_then(Path::parent) else {
        return vec![name.into()];
    };
    let mut candidates = vec![folder.join(name)];
    if let Some(contents) = folder
        .parent()
        .filter(|parent| parent.ends_with("Contents"))
    {
        candidates.push(contents.join("MacOS").join(name));
    }
    // A test finds them in the folder that tests/profile.toml names.
    let programs = option_env!("TIERBAR_BIN_DIR").filter(|_| folder.ends_with("deps"));
    if let Some(programs) = programs {
        candidates.push(Path::new(programs).join(name));
    }
    candidates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundled_program_finds_the_worker_beside_the_app() {
        let looked = candidate_paths(
            WORKER,
            Some(Path::new(
                "/Applications/Tierbar.app/Contents/Resources/tierbar",
            )),
        );
        assert_eq!(
            looked[1],
            Path::new("/Applications/Tierbar.app/Contents/MacOS/tierbar-worker")
        );
    }

    #[test]
    fn a_missing_worker_is_reported_with_its_path() {
        let error = find(Some("/nowhere/worker".into())).unwrap_err();
        assert!(error.message.contains("/nowhere/worker"), "{error}");
    }
}

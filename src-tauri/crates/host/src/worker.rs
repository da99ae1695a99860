//! The programs that the host runs.

use crate::folder::path_variable;
use std::path::{Path, PathBuf};
use tierbar_core::{Code, Error};

/// Returns one of our programs, such as `worker`: the given path, or else that in its variable, such as `TIERBAR_WORKER`, or else the one
/// beside this program or in its bundle.
///
/// # Errors
/// `Internal` with the path that was expected.
pub(crate) fn find(program: &str, given: Option<PathBuf>) -> Result<PathBuf, Error> {
    let (name, variable) = (
        format!("tierbar-{program}"),
        format!("TIERBAR_{}", program.to_ascii_uppercase()),
    );
    let named = given.or_else(|| path_variable(&variable));
    let candidates = named.map_or_else(
        || candidate_paths(&name, std::env::current_exe().ok().as_deref()),
        |path| vec![path],
    );
    if let Some(found) = candidates.iter().find(|path| path.is_file()) {
        return std::path::absolute(found)
            .map_err(|error| Error::new(Code::Internal, format!("{}: {error}", found.display())));
    }
    let looked = candidates.iter().map(|path| path.display().to_string());
    let looked = looked.collect::<Vec<_>>().join(" and ");
    let message = format!("cannot find the program {name} at {looked}");
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
            "tierbar-worker",
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
        let error = find("worker", Some("/nowhere/worker".into())).unwrap_err();
        assert!(error.message.contains("/nowhere/worker"), "{error}");
    }
}

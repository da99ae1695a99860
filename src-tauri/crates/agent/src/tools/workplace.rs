//! One chat's tools on this machine: its folder and the sandbox. All of it blocks.

use super::{
    Failure,
    files::Folder,
    shell::{self, Terms},
};
use crate::{
    agent::ActResult,
    calls::CallIntent,
    consent::{Act, Change, PermittedAct},
};
use std::{
    collections::BTreeSet,
    env,
    ffi::OsStr,
    fs::File,
    io::ErrorKind,
    path::{Path, PathBuf},
};
use tierbar_sandbox::{self as sandbox, Stop};

fn program_names(path: &OsStr) -> Option<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for folder in env::split_paths(path) {
        let files = match folder.read_dir() {
            Ok(files) => files,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(_) => return None,
        };
        for file in files {
            let Ok(file) = file else { return None };
            names.extend(file.file_name().into_string().ok());
        }
    }
    Some(names)
}

/// Where an agent's files are and its commands run.
#[derive(Debug)]
pub struct Workplace {
    pub folder: Folder,
    /// The names in the folders where programs are looked for; `None` if one cannot be read, whose programs may start all the same.
    pub programs: Option<BTreeSet<String>>,
    terms: Terms,
    /// The program `tierbar-sandbox`.
    launcher: PathBuf,
}

impl Workplace {
    /// Opens a folder for an agent.
    ///
    /// # Errors
    /// [`Failure`] for a folder that is not there or lies behind a symbolic link, that would show what is protected, or in which
    /// Tierbar's programs could be changed.
    pub fn open(folder: &Path, terms: Terms, launcher: PathBuf) -> Result<Self, Failure> {
        let folder = Folder::open(folder)?;
        let policy = sandbox::Policy {
            write: vec![folder.path().to_owned()],
            protected: terms.protected.clone(),
            ..sandbox::Policy::default()
        };
        let checked = policy.check(Some(folder.path()), &launcher);
        checked.map_err(|refused| Failure(refused.to_string()))?;
        Ok(Self {
            folder,
            programs: program_names(&sandbox::search_path()),
            terms,
            launcher,
        })
    }

    /// Reads what a change is about.
    ///
    /// # Errors
    /// [`Failure`], for the model.
    pub fn prepare(&self, wanted: CallIntent) -> Result<Change, Failure> {
        match wanted {
            CallIntent::Write { path, content } => self.folder.prepare_write(&path, &content),
            CallIntent::Edit { path, old, new } => self.folder.prepare_edit(&path, &old, &new),
            CallIntent::Act(_) => Err(Failure::new("this is no change of a file")),
        }
    }

    /// Opens the file that is to be read if it is no text but may be a document, which is not read here.
    ///
    /// # Errors
    /// [`Failure`], for the model.
    pub fn document(&self, permitted: &PermittedAct) -> Result<Option<File>, Failure> {
        match permitted.act() {
            Act::Read { .. } => self.folder.document(permitted),
            _ => Ok(None),
        }
    }

    /// Carries out a command, or an act on a file.
    ///
    /// # Errors
    /// [`Failure`], for the model. A command that ran and failed is [`ActResult`].
    pub fn perform(&self, permitted: &PermittedAct, stop: &Stop) -> Result<ActResult, Failure> {
        match permitted.act() {
            Act::Command { .. } => {
                let request = shell::request(permitted, &self.terms)?;
                let finished = sandbox::run(&self.launcher, &request, stop);
                let finished = finished.map_err(|error| Failure(error.to_string()))?;
                Ok(shell::render(&finished, &self.terms.limits))
            }
            Act::Read { path, .. } => self.read_file(permitted, path).map(ActResult::text),
            Act::Write { change, .. } => {
                self.folder.write(permitted)?;
                let text = format!("{} is written", change.path.display());
                Ok(ActResult::text(text))
            }
            Act::Search { .. } | Act::Page { .. } | Act::Documents { .. } | Act::Tool { .. } => {
                Err(Failure::new("this is not done in the folder"))
            }
        }
    }

    /// A path is listed if it is a folder, whatever the model has called it.
    fn read_file(&self, permitted: &PermittedAct, path: &Path) -> Result<String, Failure> {
        if let Ok(names) = self.folder.list(permitted) {
            return Ok(if names.is_empty() {
                "the folder is empty".to_owned()
            } else {
                names.join("\n")
            });
        }
        let Act::Read { from_line, .. } = permitted.act() else {
            return Err(Failure::new("this does not read a file"));
        };
        Ok(self
            .folder
            .read_excerpt(permitted, *from_line)?
            .render(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consent::{Decision, General, Grants, decide};
    use std::fs;

    #[test]
    fn a_path_is_read_or_listed() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().canonicalize().unwrap();
        fs::write(path.join("a"), "one\ntwo\n").unwrap();
        fs::write(path.join("long"), "x\n".repeat(20_000)).unwrap();
        fs::create_dir(path.join("empty")).unwrap();
        let place = Workplace::open(&path, Terms::default(), PathBuf::new()).unwrap();
        let read = |name: &str, from_line| {
            let act = Act::Read {
                folder: path.clone(),
                path: name.into(),
                from_line,
            };
            let general = General {
                reading: true,
                ..General::default()
            };
            let decision = decide(act, general, &Grants::default(), 0, "id".into());
            let Decision::Allowed(permitted) = decision else {
                panic!("{decision:?}");
            };
            let performed = place.perform(&permitted, &Stop::default());
            performed.map(|found| found.text)
        };
        assert_eq!(read("", 1).unwrap(), "a\nempty/\nlong");
        assert_eq!(read("empty", 1).unwrap(), "the folder is empty");
        assert_eq!(read("a", 1).unwrap(), "one\ntwo\n");
        assert_eq!(read("a", 2).unwrap(), "two\n");
        assert!(
            read("long", 1)
                .unwrap()
                .contains("has 20000 lines; read on")
        );
        assert!(read("none", 1).is_err());
        fs::write(path.join("wide"), b"\xff\xfea\0").unwrap();
        assert_eq!(read("wide", 1).unwrap(), "a\n[wide is in UTF-16LE]");
    }

    #[test]
    fn programs_are_unknown_if_a_folder_cannot_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let (tool, none) = (folder.path().join("tool"), folder.path().join("none"));
        fs::write(&tool, "").unwrap();
        let names = |second: &Path| {
            let path = env::join_paths([folder.path(), second]).unwrap();
            program_names(&path)
        };
        assert_eq!(names(&none), Some(["tool".to_owned()].into()));
        assert_eq!(names(&tool), None);
    }

    #[test]
    fn a_folder_with_the_token_is_no_workplace() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().canonicalize().unwrap();
        for name in ["data", "work", "programs"] {
            fs::create_dir(path.join(name)).unwrap();
        }
        let launcher = path.join("programs/launcher");
        fs::write(&launcher, "").unwrap();
        std::os::unix::fs::symlink(path.join("work"), path.join("link")).unwrap();
        let terms = || Terms {
            protected: vec![path.join("data")],
            ..Terms::default()
        };
        let open = |folder: &Path| Workplace::open(folder, terms(), launcher.clone());
        open(&path.join("work")).unwrap();
        for (name, why) in [
            ("", "which no command may see"),
            ("data", "which no command may see"),
            ("/", "the whole disk"),
            ("none", "does not exist"),
            ("link", "is a symbolic link"),
            // Its own tool that writes could replace what limits its commands.
            ("programs", "where Tierbar's programs are"),
        ] {
            let Failure(reason) = open(&path.join(name)).unwrap_err();
            assert!(reason.contains(why), "{name}: {reason}");
        }
    }
}

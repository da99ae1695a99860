//! The files of a change: the client's own, and the record of the change in Tierbar's data folder.

use super::edit::Change;
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};
use tierbar_connect::{Client, Form};
use tierbar_core::{Code, Error};
use tierbar_host::{clients::expand, data_folder, whole_file};

/// A client's configuration file.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) path: PathBuf,
    /// `None` if there is no file yet.
    pub(super) text: Option<String>,
}

impl Target {
    /// Finds and reads the file: the first that exists, else the first whose folder does. Blocking.
    ///
    /// # Errors
    /// `NotFound` without such a folder; `Storage` if the file cannot be read or written.
    pub(super) fn find(client: &Client, paths: &[&str]) -> Result<Self, Error> {
        let paths: Vec<_> = paths.iter().filter_map(|path| expand(path)).collect();
        let is_there = |path: &&PathBuf| path.symlink_metadata().is_ok();
        let has_folder = |path: &&PathBuf| path.parent().is_some_and(Path::is_dir);
        let mut found = paths.iter().find(is_there);
        found = found.or_else(|| paths.iter().find(has_folder));
        let Some(path) = found else {
            let folder = paths.last().and_then(|path| path.parent());
            let folder = folder.unwrap_or(Path::new("~")).display();
            return Err(
                Error::new(Code::NotFound, format!("{folder} does not exist")).hint(format!(
                    "start {} once, so that it creates the folder, then run this again",
                    client.name
                )),
            );
        };
        Self::read(path.clone())
    }

    /// # Errors
    /// `Storage` if there is a file that cannot be read or written.
    pub(super) fn read(path: PathBuf) -> Result<Self, Error> {
        let wrong = |what: String| Error::new(Code::Storage, format!("{} {what}", path.display()));
        let metadata = match fs::metadata(&path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if path.symlink_metadata().is_ok() {
                    let what = "is a link to a file that does not exist".to_owned();
                    return Err(wrong(what).hint("create that file, or remove the link"));
                }
                return Ok(Self { path, text: None });
            }
            Err(error) => return Err(wrong(format!("cannot be read: {error}"))),
        };
        if !metadata.is_file() {
            return Err(wrong("is not a file".to_owned()));
        }
        if metadata.permissions().readonly() {
            let hint = format!("make it writable: chmod u+w '{}'", path.display());
            return Err(wrong("is read-only".to_owned()).hint(hint));
        }
        let text =
            fs::read_to_string(&path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
        Ok(Self {
            path,
            text: Some(text),
        })
    }

    /// Looks whether the file is still as it was read, since its app may write it while the user is asked. Blocking.
    ///
    /// # Errors
    /// `Conflict` if it is not; `Storage` if it cannot be read.
    pub(super) fn check_unchanged(&self) -> Result<(), Error> {
        if Self::read(self.path.clone())?.text == self.text {
            return Ok(());
        }
        let message = format!(
            "{} was changed meanwhile, so Tierbar left it as it is",
            self.path.display()
        );
        Err(Error::new(Code::Conflict, message).hint("run the command again"))
    }

    /// Replaces the file's text; without one, removes the file. Blocking.
    ///
    /// # Errors
    /// `Storage` if it cannot be written. The file is then as it was.
    pub(super) fn write(&self, text: Option<&str>) -> Result<(), Error> {
        let written = match text {
            Some(text) => whole_file::replace(&self.path, text),
            None => fs::remove_file(&self.path),
        };
        written.map_err(|error| unwritable(&self.path, &error))
    }
}

fn unwritable(path: &Path, error: &io::Error) -> Error {
    let message = format!("{} cannot be written: {error}", path.display());
    Error::new(Code::Storage, message)
        .hint("make the file and its folder writable, or free up space")
}

fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unwritable(path, &error)),
        _ => Ok(()),
    }
}

/// What was changed for a client, kept until it is undone.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) path: PathBuf,
    pub(super) form: Form,
    /// The file's text before the change; `None` if there was no file.
    pub(super) before: Option<String>,
    pub(super) after: String,
    pub(super) changes: Vec<Change>,
    /// The API key that was created for it.
    pub(super) key: Option<String>,
}

/// Where a client's record is.
#[derive(Debug)]
pub(super) struct Records {
    folder: PathBuf,
    id: &'static str,
}

impl Records {
    pub(super) fn new(home: Option<&PathBuf>, client: &Client) -> Self {
        let home = home.cloned().unwrap_or_else(data_folder);
        Self {
            folder: home.join("connect"),
            id: client.id,
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.join(format!("{}.json", self.id))
    }

    /// Returns where the file's last text is, for people.
    pub(super) fn backup(&self) -> PathBuf {
        self.folder.join(format!("{}.backup", self.id))
    }

    /// # Errors
    /// `Storage` if there is one that cannot be read.
    pub(super) fn read(&self) -> Result<Option<Record>, Error> {
        let path = self.path();
        let wrong = |why: String| {
            let message = format!("{} cannot be read: {why}", path.display());
            Error::new(Code::Storage, message).hint(format!(
                "it says what was changed; the file before that is in {}",
                self.backup().display()
            ))
        };
        match fs::read_to_string(&path) {
            Ok(text) => serde_json::from_str(&text)
                .map(Some)
                .map_err(|error| wrong(error.to_string())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(wrong(error.to_string())),
        }
    }

    /// Keeps a record, and the file's text before the change. Both may hold keys, and are for their owner alone.
    ///
    /// # Errors
    /// `Storage` if they cannot be written.
    pub(super) fn write(&self, record: &Record) -> Result<(), Error> {
        let mut folder = DirBuilder::new();
        folder.recursive(true).mode(0o700);
        folder
            .create(&self.folder)
            .map_err(|error| unwritable(&self.folder, &error))?;
        if let Some(before) = &record.before {
            let backup = self.backup();
            whole_file::replace(&backup, before).map_err(|error| unwritable(&backup, &error))?;
        }
        let text = serde_json::to_string_pretty(record)
            .map_err(|error| Error::new(Code::Internal, error.to_string()))?;
        let path = self.path();
        whole_file::replace(&path, &text).map_err(|error| unwritable(&path, &error))
    }

    /// Forgets the change. The file's earlier text stays, in case it is still needed.
    ///
    /// # Errors
    /// `Storage` if the record cannot be removed.
    pub(super) fn forget(&self) -> Result<(), Error> {
        remove(&self.path())
    }

    /// Forgets the change, and the file's text before it.
    ///
    /// # Errors
    /// `Storage` if they cannot be removed.
    pub(super) fn remove(&self) -> Result<(), Error> {
        self.forget()?;
        remove(&self.backup())
    }
}

/// Returns how a file's text changes, in lines.
pub(super) fn diff(path: &Path, before: &str, after: &str) -> String {
    let (name, lines) = (
        path.display().to_string(),
        similar::TextDiff::from_lines(before, after),
    );
    lines
        .unified_diff()
        .context_radius(3)
        .header(&name, &name)
        .to_string()
}

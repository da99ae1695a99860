//! The files of a change: the client's own, and the record of the change in Tierbar's data folder.

use super::edit::{self, Change, Reversal};
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};
use tierbar_connect::{Client, Form};
use tierbar_core::{Code, Error, bad_request};
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
    pub(super) fn find(client: &Client, paths: &[&str]) -> Result<Self, Error> {
        let paths: Vec<_> = paths.iter().filter_map(|path| expand(path)).collect();
        let is_there = |path: &&PathBuf| path.symlink_metadata().is_ok();
        let has_folder = |path: &&PathBuf| path.parent().is_some_and(Path::is_dir);
        let found = paths.iter().find(is_there);
        let Some(path) = found.or_else(|| paths.iter().find(has_folder)) else {
            let folder = paths.last().and_then(|path| path.parent());
            let folder = folder.unwrap_or(Path::new("~")).display();
            let (message, app) = (format!("{folder} does not exist"), client.name);
            let hint =
                format!("start {app} once, so that it creates the folder, then run this again");
            return Err(Error::new(Code::NotFound, message).hint(hint));
        };
        Self::read(path.clone())
    }

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
        let text = fs::read_to_string(&path);
        let text = Some(text.map_err(|error| wrong(format!("cannot be read: {error}")))?);
        Ok(Self { path, text })
    }

    /// Looks whether the file is still as it was read, since its app may write it while the user is asked. Blocking.
    pub(super) fn check_unchanged(&self) -> Result<(), Error> {
        if Self::read(self.path.clone())?.text == self.text {
            return Ok(());
        }
        let path = self.path.display();
        let message = format!("{path} was changed meanwhile, so Tierbar left it as it is");
        Err(Error::new(Code::Conflict, message).hint("run the command again"))
    }

    /// Replaces the file's text; without one, removes the file. After an error, the file is as it was. Blocking.
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
    let hint = "make the file and its folder writable, or free up space";
    Error::new(Code::Storage, message).hint(hint)
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

/// A file as it is without a change.
pub(super) struct Restoration {
    /// `None`: no file.
    pub(super) text: Option<String>,
    /// What was changed since, and so stays.
    pub(super) left: Vec<String>,
}

impl Record {
    /// Returns the file without what was written: as it was, or if it was changed since, without our part.
    pub(super) fn restoration(&self, target: &Target) -> Result<Restoration, Error> {
        let whole = |text| Restoration {
            text,
            left: Vec::new(),
        };
        let Some(now) = &target.text else {
            return Ok(whole(None));
        };
        if *now == self.after {
            return Ok(whole(self.before.clone()));
        }
        let Reversal { text, left } =
            edit::revert(self.form, now, &self.changes).map_err(|why| {
                let message = format!("{} was not changed: {why}", target.path.display());
                let hint = "correct the file first, then run this again";
                bad_request(message).hint(hint)
            })?;
        let is_empty = matches!(
            text.split_whitespace().collect::<String>().as_str(),
            "" | "{}"
        );
        Ok(Restoration {
            text: Some(text).filter(|_| !is_empty || self.before.is_some()),
            left,
        })
    }
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

    pub(super) fn read(&self) -> Result<Option<Record>, Error> {
        let path = self.path();
        let wrong = |why: String| {
            let message = format!("{} cannot be read: {why}", path.display());
            let backup = self.backup();
            let backup = backup.display();
            let hint = format!("it says what was changed; the file before that is in {backup}");
            Error::new(Code::Storage, message).hint(hint)
        };
        match fs::read_to_string(&path) {
            Ok(text) => serde_json::from_str(&text).map_err(|error| wrong(error.to_string())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(wrong(error.to_string())),
        }
    }

    /// Keeps a record, and the file's text before the change. Both may hold keys, and are for their owner alone.
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
    pub(super) fn forget(&self) -> Result<(), Error> {
        remove(&self.path())
    }

    /// Forgets the change, and the file's text before it.
    pub(super) fn remove(&self) -> Result<(), Error> {
        self.forget()?;
        remove(&self.backup())
    }
}

pub(super) fn diff(path: &Path, before: &str, after: &str) -> String {
    let name = path.display().to_string();
    similar::TextDiff::from_lines(before, after)
        .unified_diff()
        .context_radius(3)
        .header(&name, &name)
        .to_string()
}

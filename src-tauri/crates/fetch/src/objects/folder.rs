//! A folder as a store: on another disk, on a server's share, or one that another program keeps in step. It is opened anew at each use,
//! and no part of its path may be a symbolic link, which could lead to another folder by now.

use super::{
    MOST_LISTED, Object, is_plain, missing_object_error, open_own, open_own_emptied, storage_error,
    too_long, wrong_length,
};
use crate::blocking;
use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};
use tierbar_core::{Code, Error};
use tierbar_nofollow::{Entry, Mode, OpenError, OpenFile, open};

#[derive(Debug, Clone)]
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    pub(super) async fn list(&self) -> Result<Vec<Object>, Error> {
        self.run(|folder| {
            let Some(opened) = open_if_there(folder)? else {
                return Ok(Vec::new());
            };
            let failed = |error| storage_error("read", folder, &error);
            let objects = opened.entries().map_err(failed)?.filter_map(|entry| {
                let Entry { name, about, .. } = match entry {
                    Ok(entry) => entry,
                    Err(error) => return Some(Err(failed(error))),
                };
                let name = name.into_string().ok()?;
                (about.is_file && is_plain(&name)).then(|| {
                    Ok(Object {
                        name,
                        bytes: about.bytes,
                        version: format!("{}-{}", about.modified, about.bytes),
                    })
                })
            });
            objects.take(MOST_LISTED).collect()
        })
        .await
    }

    pub(super) async fn read(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, Error> {
        let name = name.to_owned();
        self.run(move |folder| {
            let Some(file) = object(folder, &name)? else {
                return Ok(None);
            };
            let mut bytes = Vec::new();
            file.take(most)
                .read_to_end(&mut bytes)
                .map_err(|error| storage_error("read", folder, &error))?;
            Ok(Some(bytes))
        })
        .await
    }

    pub(super) async fn create(&self, name: &str, bytes: Vec<u8>) -> Result<(), Error> {
        let name = name.to_owned();
        self.run(move |folder| match object(folder, &name)? {
            Some(_) => Ok(()),
            None => write_object(folder, &name, bytes.as_slice()),
        })
        .await
    }

    pub(super) async fn upload(&self, name: &str, from: &Path) -> Result<(), Error> {
        let (name, from) = (name.to_owned(), from.to_owned());
        self.run(move |folder| {
            let file = open_own(&from)?;
            write_object(folder, &name, file)
        })
        .await
    }

    pub(super) async fn download(&self, name: &str, to: &Path, bytes: u64) -> Result<(), Error> {
        let (name, to) = (name.to_owned(), to.to_owned());
        self.run(move |folder| {
            let place = folder.display().to_string();
            let file = object(folder, &name)?.ok_or_else(|| missing_object_error(&place))?;
            let mut out = open_own_emptied(&to)?;
            // One more, to see that there are not more.
            let copied = io::copy(&mut file.take(bytes.saturating_add(1)), &mut out)
                .map_err(|error| storage_error("copy from", folder, &error))?;
            match copied {
                copied if copied < bytes => Err(wrong_length(&place, copied, bytes)),
                copied if copied > bytes => Err(too_long(&place, bytes)),
                _ => Ok(()),
            }
        })
        .await
    }

    pub(super) async fn remove(&self, name: &str) -> Result<(), Error> {
        let name = name.to_owned();
        self.run(move |folder| {
            let Some(opened) = open_if_there(folder)? else {
                return Ok(());
            };
            match opened.remove(OsStr::new(&name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    Err(storage_error("remove from", folder, &error))
                }
                _ => Ok(()),
            }
        })
        .await
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Path) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let folder = self.0.clone();
        blocking("the store's folder", move || work(&folder)).await
    }
}

/// Opens the folder; `None` if only its last part is missing. One on a disk that is not connected is no empty store.
fn open_if_there(folder: &Path) -> Result<Option<OpenFile>, Error> {
    let has_parent = || folder.parent().is_some_and(|parent| open(parent).is_ok());
    match open(folder) {
        Ok(opened) => Ok(Some(opened)),
        Err(error) if error.kind() == io::ErrorKind::NotFound && has_parent() => Ok(None),
        Err(error) => Err(not_opened(folder, error)),
    }
}

fn object(folder: &Path, name: &str) -> Result<Option<File>, Error> {
    let Some(opened) = open_if_there(folder)? else {
        return Ok(None);
    };
    let path = folder.join(name);
    let opened = match opened.inside(Path::new(name)) {
        Ok(opened) => opened,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(not_opened(&path, error)),
    };
    let about = opened.about();
    if !about.is_ok_and(|about| about.is_file) {
        let message = format!("{} is not a file", path.display());
        return Err(Error::new(Code::Corrupt, message));
    }
    Ok(Some(opened.into_file()))
}

/// Writes an object whole or not at all. Of a missing folder, only the last part is made: the rest is missing if a disk is not connected.
fn write_object(folder: &Path, name: &str, from: impl Read) -> Result<(), Error> {
    let opened = match open_if_there(folder)? {
        Some(opened) => opened,
        None => {
            let (Some(parent), Some(last)) = (folder.parent(), folder.file_name()) else {
                let none = io::Error::from(io::ErrorKind::NotFound);
                return Err(storage_error("write to", folder, &none));
            };
            open(parent)
                .and_then(|parent| parent.create_folder(Path::new(last), Mode::RWXU))
                .map_err(|error| not_opened(folder, error))?
        }
    };
    let written = opened.replace(OsStr::new(name), from, Mode::RUSR | Mode::WUSR);
    written.map_err(|error| storage_error("write to", folder, &error))
}

fn not_opened(path: &Path, error: OpenError) -> Error {
    match error {
        OpenError::System { error, .. } => storage_error("open", path, &error),
        error => Error::new(Code::Storage, error.to_string())
            .hint("set `contexts.store` to the real path of a folder"),
    }
}

//! A folder as a store: on another disk, on a server's share, or one that another program keeps in step.

use super::{MOST_LISTED, Object, is_plain, missing_object_error, too_long, wrong_length};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::Arc,
    time::UNIX_EPOCH,
};
use tierbar_core::{Code, Error};
use tokio::task::spawn_blocking;

#[derive(Debug, Clone)]
pub(super) struct Folder(Arc<PathBuf>);

impl Folder {
    pub(super) fn new(path: PathBuf) -> Self {
        Self(Arc::new(path))
    }

    pub(super) async fn list(&self) -> Result<Vec<Object>, Error> {
        self.run(|folder| {
            let entries = match fs::read_dir(folder) {
                // A folder on a disk that is not connected is no empty store.
                Err(error) if error.kind() == io::ErrorKind::NotFound && has_parent(folder) => {
                    return Ok(Vec::new());
                }
                entries => entries.map_err(|error| storage_error("read", folder, &error))?,
            };
            let objects = entries.flatten().filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                let file = entry.metadata().ok().filter(fs::Metadata::is_file)?;
                let modified = file.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
                is_plain(&name).then(|| Object {
                    name,
                    bytes: file.len(),
                    version: format!("{}-{}", modified.as_nanos(), file.len()),
                })
            });
            Ok(objects.take(MOST_LISTED).collect())
        })
        .await
    }

    pub(super) async fn read(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, Error> {
        let name = name.to_owned();
        self.run(move |folder| {
            let Some(file) = open(&folder.join(name))? else {
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

    pub(super) async fn write(&self, name: &str, bytes: Vec<u8>, new: bool) -> Result<(), Error> {
        let name = name.to_owned();
        self.run(move |folder| {
            if new && folder.join(&name).exists() {
                return Ok(());
            }
            write_object(folder, &name, &mut &*bytes)
        })
        .await
    }

    pub(super) async fn upload(&self, name: &str, from: &Path) -> Result<(), Error> {
        let (name, from) = (name.to_owned(), from.to_owned());
        self.run(move |folder| {
            let mut file =
                File::open(&from).map_err(|error| storage_error("read", &from, &error))?;
            write_object(folder, &name, &mut file)
        })
        .await
    }

    pub(super) async fn download(&self, name: &str, to: &Path, bytes: u64) -> Result<(), Error> {
        let (name, to) = (name.to_owned(), to.to_owned());
        self.run(move |folder| {
            let place = folder.display().to_string();
            let file = open(&folder.join(&name))?.ok_or_else(|| missing_object_error(&place))?;
            let mut out = OpenOptions::new()
                .write(true)
                .truncate(true)
                .open(&to)
                .map_err(|error| storage_error("write to", &to, &error))?;
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
        self.run(move |folder| match fs::remove_file(folder.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(storage_error("remove from", folder, &error))
            }
            _ => Ok(()),
        })
        .await
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Path) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let folder = Arc::clone(&self.0);
        spawn_blocking(move || work(&folder))
            .await
            .unwrap_or_else(|ended| Err(Error::new(Code::Internal, ended.to_string())))
    }
}

fn has_parent(folder: &Path) -> bool {
    folder.parent().is_some_and(Path::is_dir)
}

/// A file; opening a pipe would block.
fn open(path: &Path) -> Result<Option<File>, Error> {
    match fs::metadata(path) {
        Ok(found) if found.is_file() => {}
        Ok(_) => {
            let message = format!("{} is not a file", path.display());
            return Err(Error::new(Code::Corrupt, message));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(storage_error("read", path, &error)),
    }
    File::open(path)
        .map(Some)
        .map_err(|error| storage_error("read", path, &error))
}

/// Writes beside the name first.
fn write_object(folder: &Path, name: &str, from: &mut impl Read) -> Result<(), Error> {
    let mut write = || {
        if !folder.is_dir() {
            // Only the last part: the rest is missing if a disk is not connected.
            fs::create_dir(folder)?;
        }
        let mut file = tempfile::Builder::new()
            .prefix(".upload-")
            .tempfile_in(folder)?;
        io::copy(from, &mut file)?;
        file.flush()?;
        file.as_file().sync_all()?;
        file.persist(folder.join(name))
            .map_err(|failed| failed.error)?;
        Ok(())
    };
    write().map_err(|error: io::Error| storage_error("write to", folder, &error))
}

fn storage_error(what: &str, path: &Path, error: &io::Error) -> Error {
    Error::new(
        Code::Storage,
        format!("cannot {what} {}: {error}", path.display()),
    )
    .hint("check that the folder's disk is connected and has space, and that you may write to it")
}

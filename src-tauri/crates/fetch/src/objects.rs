//! A store of objects: a folder, or a bucket of a server that speaks S3. An object appears under its name whole or not at all, and
//! replaces another one in the same way. What a store returns is not trusted: its length is checked here, its content by the caller,
//! who has encrypted it.

mod bucket;
mod folder;
#[cfg(test)]
mod tests;
mod xml;

pub use bucket::BucketOptions;

use bucket::Bucket;
use folder::Folder;
use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
};
use tierbar_core::{Code, Error};

/// An object in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    pub name: String,
    pub bytes: u64,
    /// Changes with its content.
    pub version: String,
}

/// The most objects that are listed: a server that lies could go on for ever.
const MOST_LISTED: usize = 10_000;

/// A store. Names are those of files, without folders.
#[derive(Debug, Clone)]
pub struct Objects(Store);

#[derive(Debug, Clone)]
enum Store {
    Folder(Folder),
    Bucket(Box<Bucket>),
}

impl Objects {
    /// A folder, which is made when something is written.
    pub fn folder(path: PathBuf) -> Self {
        Self(Store::Folder(Folder::new(path)))
    }

    /// # Errors
    /// [`Code::ConfigInvalid`] for an address that cannot be one; [`Code::Internal`] if the system gives no TLS roots.
    pub fn bucket(options: BucketOptions) -> Result<Self, Error> {
        Ok(Self(Store::Bucket(Box::new(Bucket::new(options)?))))
    }

    /// Lists the objects, in no order.
    ///
    /// # Errors
    /// [`Code::AccessDenied`], [`Code::Unreachable`] or [`Code::Storage`] if the store refuses or cannot be reached;
    /// [`Code::Corrupt`] for an answer that makes no sense.
    pub async fn list(&self) -> Result<Vec<Object>, Error> {
        match &self.0 {
            Store::Folder(folder) => folder.list().await,
            Store::Bucket(bucket) => bucket.list().await,
        }
    }

    /// Returns the first bytes of an object, at most so many; `None` if there is none of this name.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub async fn read(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, Error> {
        check(name)?;
        match &self.0 {
            Store::Folder(folder) => folder.read(name, most).await,
            Store::Bucket(bucket) => bucket.read(name, most).await,
        }
    }

    /// Writes a small object. One that exists stays, where the store can do that.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub async fn create(&self, name: &str, bytes: Vec<u8>) -> Result<(), Error> {
        check(name)?;
        match &self.0 {
            Store::Folder(folder) => folder.create(name, bytes).await,
            Store::Bucket(bucket) => bucket.create(name, bytes).await,
        }
    }

    /// Copies a file to the store.
    ///
    /// # Errors
    /// As [`Self::list`]; [`Code::Corrupt`] if the store has another length afterwards.
    pub async fn upload(&self, name: &str, from: &Path) -> Result<(), Error> {
        check(name)?;
        match &self.0 {
            Store::Folder(folder) => folder.upload(name, from).await,
            Store::Bucket(bucket) => bucket.upload(name, from).await,
        }
    }

    /// Copies an object of so many bytes into a file, which is emptied first.
    ///
    /// # Errors
    /// As [`Self::list`]; [`Code::NotFound`] if it is gone; [`Code::Corrupt`] if it has another length.
    pub async fn download(&self, name: &str, to: &Path, bytes: u64) -> Result<(), Error> {
        check(name)?;
        match &self.0 {
            Store::Folder(folder) => folder.download(name, to, bytes).await,
            Store::Bucket(bucket) => bucket.download(name, to, bytes).await,
        }
    }

    /// Removes an object, and returns whether the store keeps older versions of it. Removing what is not there is no error.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub async fn remove(&self, name: &str) -> Result<bool, Error> {
        check(name)?;
        match &self.0 {
            Store::Folder(folder) => folder.remove(name).await.map(|()| false),
            Store::Bucket(bucket) => bucket.remove(name).await,
        }
    }
}

/// A name that is a file's in every store, and leads out of none.
fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    !name.is_empty() && name.len() <= 200 && !name.starts_with('.') && name.bytes().all(plain)
}

fn check(name: &str) -> Result<(), Error> {
    if is_plain(name) {
        return Ok(());
    }
    Err(Error::new(
        Code::Internal,
        format!("{name:?} is no name for an object"),
    ))
}

fn wrong_length(place: &str, found: u64, expected: u64) -> Error {
    Error::new(
        Code::Corrupt,
        format!("{place} returned {found} of {expected} bytes"),
    )
    .hint("try again; if it stays so, upload the context again")
}

fn too_long(place: &str, expected: u64) -> Error {
    Error::new(
        Code::Corrupt,
        format!("{place} returned more than the {expected} bytes that it announced"),
    )
    .hint("upload the context again; nothing here was changed")
}

/// Opens a file of Tierbar's own that is copied to a store.
fn open_own(path: &Path) -> Result<File, Error> {
    File::open(path).map_err(|error| storage_error("read", path, &error))
}

/// Opens a file of Tierbar's own into which an object is copied.
fn open_own_emptied(path: &Path) -> Result<File, Error> {
    let opened = File::options().write(true).truncate(true).open(path);
    opened.map_err(|error| storage_error("write to", path, &error))
}

fn storage_error(what: &str, path: &Path, error: &io::Error) -> Error {
    Error::new(
        Code::Storage,
        format!("cannot {what} {}: {error}", path.display()),
    )
    .hint("check that the folder's disk is connected and has space, and that you may write to it")
}

fn missing_object_error(place: &str) -> Error {
    Error::new(Code::NotFound, format!("{place} no longer has the object"))
}

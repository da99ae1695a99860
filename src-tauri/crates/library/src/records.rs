//! Records of where a model file came from, and its sha256: one small file beside each model file, `.tierbar/NAME.json`, so
//! that it moves with the models on an external disk. A split model has one for each part.

use crate::{
    folder::file_name,
    headers::{Stamp, stamp, stamp_at},
    other_apps::read_small,
};
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::{
    fs, io,
    io::Write,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};
use tierbar_core::{Code, Error};
use tierbar_fetch::{Url, display_url};

const FOLDER: &str = ".tierbar";
/// The longest name that every file system takes.
const MAX_NAME: usize = 255;
/// FAT stores modification times with a resolution of two seconds.
const SAME_TIME_SECONDS: u64 = 2;

/// The record of one file. Times in seconds since 1970, sizes in bytes, hashes in lower-case hex.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The requested model.
    pub reference: Option<String>,
    /// The source URL, without parts that may be secret.
    pub url: Option<String>,
    pub fetched: Option<u64>,
    /// The size when it was downloaded or first hashed.
    pub size: u64,
    pub modified: Option<u64>,
    pub sha256: Option<String>,
    /// The last complete check.
    pub hashed: Option<FileHash>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileHash {
    pub sha256: String,
    pub at: u64,
    /// The modification time of the file then.
    pub modified: Option<u64>,
}

/// The source of a downloaded file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    pub reference: String,
    /// Its query, fragment and credentials are not kept.
    pub url: Url,
    pub sha256: String,
}

impl Record {
    /// Returns the hash of the last check or download.
    pub fn last_sha256(&self) -> Option<&str> {
        let hashed = self.hashed.as_ref().map(|hashed| &hashed.sha256);
        hashed.or(self.sha256.as_ref()).map(String::as_str)
    }

    /// Returns whether the file is the recorded one, by size and time.
    fn is_of(&self, file: &Stamp) -> bool {
        self.size == file.size && is_same_time(self.modified, file)
    }

    /// Returns whether the file is the one that was last checked, which may have changed since the download.
    fn was_read_of(&self, file: &Stamp) -> bool {
        let hashed = self.hashed.as_ref();
        self.size == file.size && hashed.is_some_and(|hashed| is_same_time(hashed.modified, file))
    }
}

/// Returns `true` also if a time is unknown.
fn is_same_time(then: Option<u64>, file: &Stamp) -> bool {
    match (then, file.modified.and_then(seconds)) {
        (Some(then), Some(now)) => then.abs_diff(now) <= SAME_TIME_SECONDS,
        _ => true,
    }
}

/// Returns the record of a file, which may have changed since. An unreadable record counts as none.
pub(crate) fn read(path: &Path) -> Option<Record> {
    serde_json::from_slice(&read_small(&record_path(path)?)?).ok()
}

/// Returns the record of a file, unless the file has been replaced since, even by one of the same size.
pub(crate) fn current_record(path: &Path, file: &Stamp) -> Option<Record> {
    read(path).filter(|record| record.is_of(file) || record.was_read_of(file))
}

/// Returns whether Tierbar downloaded the file and it has not been replaced since.
pub(crate) fn is_fetched(path: &Path) -> bool {
    let unchanged =
        |file| read(path).is_some_and(|record| record.fetched.is_some() && record.is_of(&file));
    stamp_at(path).is_some_and(unchanged)
}

pub(crate) fn record_download(path: &Path, origin: Origin) -> Result<(), Error> {
    let file = fs::metadata(path).map_err(|error| unwritten(path, &error))?;
    let Stamp { size, modified, .. } = stamp(&file);
    write(
        path,
        &Record {
            reference: Some(origin.reference),
            url: Some(display_url(&origin.url)),
            fetched: seconds(SystemTime::now()),
            size,
            modified: modified.and_then(seconds),
            sha256: Some(origin.sha256),
            hashed: None,
        },
    )
}

/// Returns the expected hash of the file. For a file that was not downloaded, this is its previous hash, unless the file
/// has changed since.
pub(crate) fn expected_sha256(path: &Path) -> Option<String> {
    let (record, file) = (read(path)?, stamp_at(path)?);
    let is_known = record.fetched.is_some() || record.is_of(&file);
    record.sha256.filter(|_| is_known)
}

pub(crate) fn record_hash(path: &Path, sha256: &str) -> Result<(), Error> {
    let file = fs::metadata(path).map_err(|error| unwritten(path, &error))?;
    let file = stamp(&file);
    let known = read(path).filter(|record| record.fetched.is_some() || record.is_of(&file));
    let mut record = known.unwrap_or(Record {
        size: file.size,
        modified: file.modified.and_then(seconds),
        sha256: Some(sha256.to_owned()),
        ..Record::default()
    });
    record.hashed = Some(FileHash {
        sha256: sha256.to_owned(),
        at: seconds(SystemTime::now()).unwrap_or(0),
        modified: file.modified.and_then(seconds),
    });
    write(path, &record)
}

/// Writes the record atomically, also across a power failure.
fn write(path: &Path, record: &Record) -> Result<(), Error> {
    let replace = || {
        let place = record_path(path).ok_or(io::ErrorKind::InvalidInput)?;
        let folder = place.parent().ok_or(io::ErrorKind::InvalidInput)?;
        fs::create_dir_all(folder)?;
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(&serde_json::to_vec_pretty(record)?)?;
        file.as_file().sync_all()?;
        file.persist(&place)?;
        io::Result::Ok(())
    };
    replace().map_err(|error| unwritten(path, &error))
}

fn unwritten(path: &Path, error: &io::Error) -> Error {
    Error::new(
        Code::Storage,
        format!(
            "the record of {} cannot be written: {error}",
            path.display()
        ),
    )
    .hint("free up space, or make the folder writable")
}

pub(crate) fn record_path(path: &Path) -> Option<PathBuf> {
    let mut name = path.file_name()?.to_owned();
    name.push(".json");
    if name.len() > MAX_NAME {
        let hash = Sha256::digest(file_name(path).as_bytes());
        name = format!("{}.json", HEXLOWER.encode(&hash)).into();
    }
    Some(path.parent()?.join(FOLDER).join(name))
}

/// In seconds since 1970.
pub(crate) fn seconds(time: SystemTime) -> Option<u64> {
    Some(time.duration_since(UNIX_EPOCH).ok()?.as_secs())
}

#[cfg(test)]
mod tests;

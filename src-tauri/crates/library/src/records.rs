//! What was fetched, from where, with which hash: one small file beside each model file, `.tierbar/NAME.json`, so that
//! it travels with the models on an external disk. A split model has one for each part.

use crate::{
    folder::file_name,
    headers::{Stamp, stamp},
    keepers::read_small,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::{
    fs, io,
    io::Write,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};
use tierbar_core::{Code, Error};
use url::Url;

const FOLDER: &str = ".tierbar";
/// The longest name that every file system takes.
const MAX_NAME: usize = 255;
/// FAT keeps times of change to two seconds.
const SAME_TIME_SECONDS: u64 = 2;

/// What is known of one file. Times in seconds since 1970, sizes in bytes, hashes in lower-case hex.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// What was asked for.
    pub reference: Option<String>,
    /// Where it came from, without what may be secret.
    pub url: Option<String>,
    pub fetched: Option<u64>,
    /// The file as it was fetched, or first hashed.
    pub size: u64,
    pub modified: Option<u64>,
    pub sha256: Option<String>,
    /// The last time that all of it was read.
    pub hashed: Option<Hashed>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hashed {
    pub sha256: String,
    pub at: u64,
    /// The file's time of change then.
    pub modified: Option<u64>,
}

/// Where a file that was fetched came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    pub reference: String,
    /// Its query, fragment and credentials are not kept.
    pub url: Url,
    pub sha256: String,
}

impl Record {
    /// The hash of the bytes when they were last read.
    #[must_use]
    pub fn last_sha256(&self) -> Option<&str> {
        let hashed = self.hashed.as_ref().map(|hashed| &hashed.sha256);
        hashed.or(self.sha256.as_ref()).map(String::as_str)
    }

    /// Whether the file is the one that was recorded, as far as size and time tell.
    fn is_of(&self, file: &Stamp) -> bool {
        self.size == file.size && is_same_time(self.modified, file)
    }

    /// Whether it is the one that was read last, which may have been changed since it was recorded.
    fn was_read_of(&self, file: &Stamp) -> bool {
        let hashed = self.hashed.as_ref();
        self.size == file.size && hashed.is_some_and(|hashed| is_same_time(hashed.modified, file))
    }
}

/// Also where one of the two is not known.
fn is_same_time(then: Option<u64>, file: &Stamp) -> bool {
    match (then, file.modified.and_then(seconds)) {
        (Some(then), Some(now)) => then.abs_diff(now) <= SAME_TIME_SECONDS,
        _ => true,
    }
}

/// The record of a file, whatever has become of the file since. One that cannot be read is none.
pub(crate) fn read(path: &Path) -> Option<Record> {
    serde_json::from_slice(&read_small(&place(path)?)?).ok()
}

/// The record of the file if it still is that file: of one that a user put in its place nothing is known, even if it is
/// of the same size.
pub(crate) fn current(path: &Path, file: &Stamp) -> Option<Record> {
    read(path).filter(|record| record.is_of(file) || record.was_read_of(file))
}

/// Whether the file is one that we fetched, and no other was put in its place since.
pub(crate) fn is_fetched(path: &Path) -> bool {
    let Ok(file) = fs::metadata(path) else {
        return false;
    };
    let unchanged = |record: &Record| record.fetched.is_some() && record.is_of(&stamp(&file));
    read(path).is_some_and(|record| unchanged(&record))
}

/// Writes down where the file came from.
pub(crate) fn fetched(path: &Path, origin: Origin) -> Result<(), Error> {
    let file = fs::metadata(path).map_err(|error| unwritten(path, &error))?;
    let Stamp { size, modified, .. } = stamp(&file);
    let mut url = origin.url;
    url.set_query(None);
    url.set_fragment(None);
    // Neither fails for a URL that has a host; one without has no credentials.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    write(
        path,
        &Record {
            reference: Some(origin.reference),
            url: Some(url.into()),
            fetched: seconds(SystemTime::now()),
            size,
            modified: modified.and_then(seconds),
            sha256: Some(origin.sha256),
            hashed: None,
        },
    )
}

/// The hash that the file should have. A file that was not fetched should have the one that it had before, unless it
/// has been changed since.
pub(crate) fn expected(path: &Path) -> Option<String> {
    let record = read(path)?;
    let file = stamp(&fs::metadata(path).ok()?);
    (record.fetched.is_some() || record.is_of(&file))
        .then_some(record.sha256)
        .flatten()
}

/// Writes down that the file was read from end to end.
pub(crate) fn hashed(path: &Path, sha256: &str) -> Result<(), Error> {
    let file = fs::metadata(path).map_err(|error| unwritten(path, &error))?;
    let file = stamp(&file);
    let known = read(path).filter(|record| record.fetched.is_some() || record.is_of(&file));
    let mut record = known.unwrap_or(Record {
        size: file.size,
        modified: file.modified.and_then(seconds),
        sha256: Some(sha256.to_owned()),
        ..Record::default()
    });
    record.hashed = Some(Hashed {
        sha256: sha256.to_owned(),
        at: seconds(SystemTime::now()).unwrap_or(0),
        modified: file.modified.and_then(seconds),
    });
    write(path, &record)
}

/// All of it or nothing, also if the power fails.
fn write(path: &Path, record: &Record) -> Result<(), Error> {
    let replace = || {
        let place = place(path).ok_or(io::ErrorKind::InvalidInput)?;
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
            "what is known of {} cannot be written down: {error}",
            path.display()
        ),
    )
    .hint("free some space, or make the folder writable")
}

/// The file that the record of a file is in.
pub(crate) fn place(path: &Path) -> Option<PathBuf> {
    let mut name = path.file_name()?.to_owned();
    name.push(".json");
    if name.len() > MAX_NAME {
        let hash = Sha256::digest(file_name(path).as_bytes());
        name = format!("{}.json", hex(&hash)).into();
    }
    Some(path.parent()?.join(FOLDER).join(name))
}

fn seconds(time: SystemTime) -> Option<u64> {
    Some(time.duration_since(UNIX_EPOCH).ok()?.as_secs())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;

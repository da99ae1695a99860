//! A copy of the file beside it, and how a file that has lost its beginning is noticed: SQLite would take it for a new one, and remove
//! what its log still has.

use crate::{failure, wal};
use rusqlite::{Connection, OpenFlags};
use std::{
    fs::{self, File, OpenOptions, Permissions},
    io,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    time::Duration,
};
use tierbar_core::{Code, Error};

const AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// Bytes. A larger file is not copied: it would take the disk for minutes.
const LARGEST: u64 = 4 << 30;

pub(crate) fn path_of(path: &Path) -> PathBuf {
    path.with_extension("copy.db")
}

fn partial_of(path: &Path) -> PathBuf {
    path.with_extension("copy.part")
}

/// # Errors
/// `Storage` for a file without a beginning, though there is a log of it or a copy.
pub(crate) fn check_beginning(path: &Path) -> Result<(), Error> {
    let length = |path: &Path| fs::metadata(path).map_or(0, |file| file.len());
    let has_more = length(&wal::path(path)) > 0 || (path.exists() && path_of(path).exists());
    if length(path) > 0 || !has_more {
        return Ok(());
    }
    let message = format!(
        "the chats' file {} is empty, and was not before",
        path.display()
    );
    Err(Error::new(Code::Storage, message).hint(hint(path)))
}

pub(crate) fn hint(path: &Path) -> String {
    let copy = path_of(path);
    let next = match copy.metadata().and_then(|copy| copy.modified()) {
        Ok(made) => {
            let made = jiff::Timestamp::try_from(made).unwrap_or_default();
            let minute = made
                .to_zoned(jiff::tz::TimeZone::system())
                .strftime("%F %R");
            let (copy, file) = (copy.display(), path.display());
            format!(
                "copy {copy}, which is of {minute}, to {file}; without it, the next start makes a new file"
            )
        }
        Err(_) => "the next start makes a new one".to_owned(),
    };
    format!(
        "quit Tierbar and move the file (and the -wal and -shm files beside it) elsewhere; then {next}. What can be read of the old \
         file, `sqlite3 FILE .recover` prints"
    )
}

/// Copies the file unless there is a copy of the last day. Returns whether it did. Blocking.
///
/// # Errors
/// `Storage` if the file cannot be read whole, or the copy not be written; the last copy then stays.
pub(crate) fn keep(path: &Path) -> Result<bool, Error> {
    let copy = path_of(path);
    let made = copy.metadata().and_then(|copy| copy.modified());
    let is_fresh = made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age < AGE));
    if is_fresh || path.metadata().is_ok_and(|file| file.len() > LARGEST) {
        return Ok(false);
    }
    let partial = partial_of(path);
    let written = write(path, &partial).and_then(|()| {
        let synced = File::open(&partial).and_then(|file| {
            // If it was removed meanwhile, SQLite has created it.
            file.set_permissions(Permissions::from_mode(0o600))?;
            file.sync_all()
        });
        let named = synced.and_then(|()| fs::rename(&partial, &copy));
        named.map_err(|error| failure::of_io(&copy, &error))
    });
    if written.is_err() {
        let _gone = fs::remove_file(&partial);
    }
    written.map(|()| true)
}

/// Reads each page, so that no copy is made of a file that is damaged.
fn write(path: &Path, copy: &Path) -> Result<(), Error> {
    let mut empty = OpenOptions::new();
    empty.write(true).create(true).truncate(true).mode(0o600);
    empty
        .open(copy)
        .map_err(|error| failure::of_io(copy, &error))?;
    let sqlite = |error: rusqlite::Error| failure::of_sqlite(path, &error);
    // Of its own, so that no other call waits for it.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(sqlite)?;
    let target = copy.to_string_lossy();
    connection
        .execute("VACUUM INTO ?1", [&*target])
        .map_err(sqlite)?;
    Ok(())
}

/// Removes the copy, which has what was erased, and one that is being made, which then fails.
///
/// # Errors
/// `Storage` if it cannot be removed.
pub(crate) fn remove(path: &Path) -> Result<(), Error> {
    for copy in [partial_of(path), path_of(path)] {
        match fs::remove_file(&copy) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failure::of_io(&copy, &error));
            }
            _ => {}
        }
    }
    Ok(())
}

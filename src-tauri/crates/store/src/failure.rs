//! SQLite's errors, as errors with a hint.

use crate::backup;
use rusqlite::ErrorCode;
use std::{io, path::Path};
use tierbar_core::{Code, Error};

pub(crate) fn of_sqlite(path: &Path, error: &rusqlite::Error) -> Error {
    let shown = path.display();
    let storage = |message: String, hint: &str| Error::new(Code::Storage, message).hint(hint);
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => storage(
            format!("the volume of {shown} is full"),
            "free up space on it and try again",
        ),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => storage(
            format!("the chats in {shown} cannot be opened for writing: {error}"),
            "make the file and its folder writable for your user",
        ),
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => storage(
            format!("the chats' file {shown} is damaged: {error}"),
            &backup::hint(path),
        ),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => storage(
            format!("another program keeps {shown} locked"),
            "close the program that has the file open and try again",
        ),
        Some(ErrorCode::SystemIoFailure) => storage(
            format!("reading or writing {shown} failed: {error}"),
            "check that its volume is still connected and has free space",
        ),
        Some(ErrorCode::TooBig) => Error::new(
            Code::PayloadTooLarge,
            "the text is larger than a database row can be (1 GB)",
        ),
        _ => Error::new(
            Code::Internal,
            format!("the database {shown} refused a statement: {error}"),
        ),
    }
}

pub(crate) fn of_io(path: &Path, error: &io::Error) -> Error {
    let hint = match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "make the file and its folder writable for your user"
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free up space on its volume and try again"
        }
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => "make its folder first",
        _ => "check the path and its volume",
    };
    Error::new(
        Code::Storage,
        format!(
            "the chats' file {} cannot be opened: {error}",
            path.display()
        ),
    )
    .hint(hint)
}

//! The error of a file that cannot be read.

use std::io::{self, ErrorKind};
use tierbar_core::{Code, Error};

pub(crate) fn unreadable(name: &str, error: &io::Error) -> Error {
    let code = match error.kind() {
        ErrorKind::NotFound => Code::NotFound,
        ErrorKind::PermissionDenied => Code::AccessDenied,
        _ => Code::BadRequest,
    };
    Error::new(code, format!("{name} cannot be read: {error}"))
}

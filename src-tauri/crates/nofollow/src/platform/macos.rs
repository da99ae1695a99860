//! macOS: `O_NOFOLLOW_ANY`, and `F_GETPATH`.

use rustix::{
    fs::{Mode, OFlags, Stat, getpath, openat},
    io::{Errno, retry_on_intr},
};
use std::{
    ffi::OsString,
    io,
    os::{
        fd::{BorrowedFd, OwnedFd},
        unix::ffi::OsStringExt,
    },
    path::{Path, PathBuf},
};

/// There is no way to open a file without a right to it.
pub(crate) const LOCATE: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK);
pub(crate) const PRIVACY: Option<&str> = Some(
    "macOS does not let Tierbar read it: System Settings → Privacy & Security → Files & Folders",
);

/// Opens a path; a relative one leads nowhere but into the folder, since it has no `..`.
pub(crate) fn open(folder: BorrowedFd<'_>, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::NOFOLLOW_ANY;
    retry_on_intr(|| openat(folder, path, flags, Mode::empty()))
}

pub(crate) fn real_path(file: BorrowedFd<'_>) -> io::Result<PathBuf> {
    let path = getpath(file)?;
    Ok(OsString::from_vec(path.into_bytes()).into())
}

pub(crate) fn modified(stat: &Stat) -> i64 {
    stat.st_mtime
        .saturating_mul(1_000_000_000)
        .saturating_add(stat.st_mtime_nsec)
}

pub(crate) fn flags(stat: &Stat) -> u32 {
    stat.st_flags
}

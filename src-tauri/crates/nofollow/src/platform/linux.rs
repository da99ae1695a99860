//! Linux: `openat2`, and the links in `/proc`.

use rustix::{
    fs::{Mode, OFlags, ResolveFlags, Stat, openat2},
    io::{Errno, retry_on_intr},
};
use std::{
    fs, io,
    os::fd::{AsRawFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};

pub(crate) const LOCATE: OFlags = OFlags::PATH;
/// Only permissions deny here.
pub(crate) const PRIVACY: Option<&str> = None;

/// Opens a path; a relative one leads nowhere but into the folder.
pub(crate) fn open(folder: BorrowedFd<'_>, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut resolve = ResolveFlags::NO_SYMLINKS;
    if path.is_relative() {
        resolve |= ResolveFlags::BENEATH;
    }
    retry_on_intr(|| openat2(folder, path, flags, Mode::empty(), resolve))
}

pub(crate) fn real_path(file: BorrowedFd<'_>) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

pub(crate) fn modified(stat: &Stat) -> i64 {
    let nanoseconds = i64::try_from(stat.st_mtime_nsec).unwrap_or(0);
    stat.st_mtime
        .saturating_mul(1_000_000_000)
        .saturating_add(nanoseconds)
}

/// None: files have their content here.
pub(crate) fn flags(_: &Stat) -> u32 {
    0
}

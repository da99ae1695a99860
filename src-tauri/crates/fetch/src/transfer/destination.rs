//! The destination of a download: its folder, the lock on the partial file, free space, and the final name.

use super::journal::Paths;
use rustix::{
    fs::{
        CWD, FlockOperation, OFlags, RenameFlags, StatVfs, flock, fstatvfs, renameat_with, statvfs,
    },
    io::Errno,
};
use std::{
    fs::{self, File},
    io,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::Path,
};
use tierbar_core::{Code, Error, bad_request, units::file_size, volume};

/// A download in progress stops once less than this part of the margin is free, so that it need not stop for the first
/// megabyte that others write.
const LEFT_SHARE: u64 = 4;

/// A folder of models may be one that others write to: a link that they have put in a file's place is not followed.
#[expect(clippy::cast_possible_wrap, reason = "a flag")]
pub(super) const NO_LINKS: i32 = OFlags::NOFOLLOW.bits() as i32;

pub(super) fn storage_error(what: &str, path: &Path, error: &io::Error) -> Error {
    Error::new(Code::Storage, format!("{what} {}: {error}", path.display()))
}

/// Returns the folder of `dest`, which must exist: the mount point of an unplugged volume must not be filled instead.
pub(super) fn folder_of(dest: &Path) -> Result<&Path, Error> {
    let is_file = dest.file_name().is_some() && dest.is_absolute();
    let Some(folder) = dest.parent().filter(|_| is_file) else {
        let message = format!("`{}` is not the absolute path of a file", dest.display());
        return Err(bad_request(message));
    };
    if folder.is_dir() {
        return Ok(folder);
    }
    let message = format!("the folder {} does not exist", folder.display());
    Err(Error::new(Code::Storage, message).hint("check that its volume is mounted"))
}

pub(super) fn lock(paths: &Paths) -> Result<File, Error> {
    let failed = |error: &io::Error| storage_error("cannot write", &paths.part, error);
    loop {
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .custom_flags(NO_LINKS)
            .open(&paths.part)
            .map_err(|error| failed(&error))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            // Some network volumes have no locks.
            Ok(()) | Err(Errno::NOTSUP | Errno::NOSYS) => {}
            Err(Errno::WOULDBLOCK) => {
                let message = format!("another Tierbar is downloading {}", paths.part.display());
                return Err(Error::new(Code::AlreadyRunning, message)
                    .hint("wait until it is done, or pause the download there"));
            }
            Err(error) => return Err(failed(&error.into())),
        }
        // Another process may have renamed or removed it between our open and our lock.
        match check_in_place(&file, &paths.part) {
            Ok(()) => return Ok(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(&error)),
        }
    }
}

/// Returns an error of the kind `NotFound` if the path no longer leads to the open file: its volume was disconnected, and
/// what is written by name from now on would fill the mount point.
pub(super) fn check_in_place(file: &File, part: &Path) -> io::Result<()> {
    let ours = file.metadata()?;
    match fs::metadata(part) {
        Ok(there) if (there.dev(), there.ino()) == (ours.dev(), ours.ino()) => Ok(()),
        _ => Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!("{} is gone", part.display()),
        )),
    }
}

/// Removes the partial file and its journal, unless another process uses them.
pub(super) fn discard(paths: &Paths) -> io::Result<()> {
    // Kept open, and so locked, until both are removed.
    let part = File::open(&paths.part);
    let lock = part
        .as_ref()
        .map(|part| flock(part, FlockOperation::NonBlockingLockExclusive));
    match lock {
        Ok(Err(Errno::WOULDBLOCK)) => Ok(()),
        _ => paths.remove_all(),
    }
}

/// Returns an error if the volume has no space for `missing` bytes.
pub(super) fn check_space(folder: &Path, missing: u64, margin: Option<u64>) -> Result<(), Error> {
    let volume = statvfs(folder)
        .map_err(|error| storage_error("cannot read the free space of", folder, &error.into()))?;
    let (free, margin) = free_and_margin(&volume, margin);
    let wanted = missing.saturating_add(margin);
    if free >= wanted {
        return Ok(());
    }
    Err(Error::new(
        Code::Storage,
        format!(
            "the download needs {} more, and {} has {} free, of which {} must stay free",
            file_size(missing),
            folder.display(),
            file_size(free),
            file_size(margin)
        ),
    )
    .hint("free up space, or choose a models folder on another volume")
    .detail("free_bytes", free)
    .detail("missing_bytes", missing)
    .detail("margin_bytes", margin))
}

/// Returns an error if the volume is nearly full, whether by other programs, other downloads, or this download of a file
/// of unknown size.
pub(super) fn check_remaining_space(
    file: &File,
    part: &Path,
    margin: Option<u64>,
) -> Result<(), Error> {
    let volume = fstatvfs(file)
        .map_err(|error| storage_error("cannot read the free space of", part, &error.into()))?;
    let (free, margin) = free_and_margin(&volume, margin);
    let least = margin / LEFT_SHARE;
    if free >= least {
        return Ok(());
    }
    let message = format!(
        "the volume of {} has only {} free, and {} must stay free",
        part.display(),
        file_size(free),
        file_size(least)
    );
    Err(Error::new(Code::Storage, message)
        .hint("free up space, then resume the download; the partial file is kept")
        .detail("free_bytes", free)
        .detail("margin_bytes", least))
}

fn free_and_margin(stat: &StatVfs, margin: Option<u64>) -> (u64, u64) {
    let size = stat.f_blocks * stat.f_frsize;
    let margin = margin.unwrap_or_else(|| volume::margin(size));
    (stat.f_bavail * stat.f_frsize, margin)
}

/// Renames the verified file to `dest`, which must not exist, so that it survives a power cut. `sync` is
/// [`crate::platform::sync`] outside tests.
pub(super) fn rename_into_place(
    file: &File,
    paths: &Paths,
    dest: &Path,
    folder: &Path,
    sync: &dyn Fn(&File) -> io::Result<()>,
) -> Result<(), Error> {
    let failed = |error: io::Error| storage_error("cannot finish", dest, &error);
    sync(file).map_err(failed)?;
    match renameat_with(CWD, &paths.part, CWD, dest, RenameFlags::NOREPLACE) {
        Ok(()) => {}
        Err(Errno::EXIST) => return Err(name_taken(dest)),
        // Some volumes (exFAT, network volumes) cannot do both at once.
        Err(Errno::INVAL | Errno::NOTSUP | Errno::NOSYS) => {
            if fs::symlink_metadata(dest).is_ok() {
                return Err(name_taken(dest));
            }
            fs::rename(&paths.part, dest).map_err(failed)?;
        }
        Err(error) => return Err(failed(error.into())),
    }
    // The journal is removed last: until the new name is on the disk, a power cut may bring the old one back. The file
    // has its name now, so a failure here is only logged.
    let settled = File::open(folder)
        .and_then(|folder| sync(&folder))
        .and_then(|()| paths.remove_journal());
    if let Err(error) = settled {
        tracing::warn!(dest = %dest.display(), %error, "cannot clean up after a finished download");
    }
    Ok(())
}

pub(super) fn name_taken(dest: &Path) -> Error {
    Error::new(
        Code::Storage,
        format!("{} already exists and is a different file", dest.display()),
    )
    .hint("move or delete that file, then try again")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn one_gibibyte_or_a_twentieth_of_a_small_volume_stays_free() {
        assert_eq!(volume::margin(500 << 30), 1 << 30);
        assert_eq!(volume::margin(20 << 30), 1 << 30);
        assert_eq!(volume::margin(10 << 30), 1 << 29);
        let stat = statvfs("/").unwrap();
        let size = stat.f_blocks * stat.f_frsize;
        assert_eq!(free_and_margin(&stat, None).1, volume::margin(size));
        assert_eq!(free_and_margin(&stat, Some(7)).1, 7);
    }

    #[test]
    fn a_link_in_a_partial_files_place_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::of(&folder.path().join("model.gguf"));
        let victim = folder.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, &paths.part).unwrap();
        let error = lock(&paths).unwrap_err();
        assert_eq!(error.code, Code::Storage);
        assert!(error.message.contains("model.gguf.part"), "{error}");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    }

    #[test]
    fn a_file_is_synced_then_renamed_then_loses_its_journal() {
        let folder = tempfile::tempdir().unwrap();
        let dest = folder.path().join("model.gguf");
        let paths = Paths::of(&dest);
        let finish = |refused: Option<bool>| {
            let file = File::create(&paths.part).unwrap();
            fs::write(&paths.journal, "{}").unwrap();
            let steps = RefCell::new(Vec::new());
            let sync = |file: &File| {
                let is_folder = file.metadata()?.is_dir();
                let step = (is_folder, dest.exists(), paths.journal.exists());
                steps.borrow_mut().push(step);
                match refused {
                    Some(refused) if refused == is_folder => Err(io::ErrorKind::Unsupported.into()),
                    _ => Ok(()),
                }
            };
            let is_renamed = rename_into_place(&file, &paths, &dest, folder.path(), &sync).is_ok();
            (is_renamed, steps.into_inner())
        };
        let (before, after) = ((false, false, true), (true, true, true));
        assert_eq!(finish(None), (true, vec![before, after]));
        assert!(!paths.journal.exists());
        fs::remove_file(&dest).unwrap();

        // A file that cannot be synced is not renamed; a failure after the rename is only logged.
        assert_eq!(finish(Some(false)), (false, vec![before]));
        assert!(!dest.exists() && paths.journal.exists());
        assert_eq!(finish(Some(true)), (true, vec![before, after]));
    }
}

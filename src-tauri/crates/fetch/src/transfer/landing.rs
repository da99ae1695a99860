//! The file system around one file: who else fetches it, whether there is room, and how it gets its name.

use super::{disk, journal::Paths};
use rustix::{
    fs::{CWD, FlockOperation, RenameFlags, StatVfs, flock, fstatvfs, renameat_with, statvfs},
    io::Errno,
};
use std::{
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt,
    path::Path,
};
use tierbar_core::{Code, Error, volume};

/// Of the margin this share is left even to a download that has begun: it need not end for the others' first megabyte.
const LEFT_SHARE: u64 = 4;

fn storage(what: &str, path: &Path, error: &io::Error) -> Error {
    Error::new(Code::Storage, format!("{what} {}: {error}", path.display()))
}

/// The folder that `dest` names a file in, which must be there: an unplugged volume must not be filled in its
/// mount point's place.
pub(super) fn folder_of(dest: &Path) -> Result<&Path, Error> {
    let folder = dest
        .parent()
        .filter(|_| dest.file_name().is_some() && dest.is_absolute());
    let folder = folder.ok_or_else(|| {
        Error::new(
            Code::BadRequest,
            format!("`{}` is no absolute path of a file", dest.display()),
        )
    })?;
    if folder.is_dir() {
        Ok(folder)
    } else {
        Err(Error::new(
            Code::Storage,
            format!("the folder {} is not there", folder.display()),
        )
        .hint("Is its volume mounted?"))
    }
}

/// Opens the partial file for this process alone.
pub(super) fn lock(paths: &Paths) -> Result<File, Error> {
    let failed = |error: &io::Error| storage("cannot write", &paths.part, error);
    loop {
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&paths.part)
            .map_err(|error| failed(&error))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            // Some network volumes have no locks.
            Ok(()) | Err(Errno::NOTSUP | Errno::NOSYS) => {}
            Err(Errno::WOULDBLOCK) => {
                return Err(Error::new(
                    Code::AlreadyRunning,
                    format!("another Tierbar fetches {} now", paths.part.display()),
                )
                .hint("Wait for it, or pause it there."));
            }
            Err(error) => return Err(failed(&error.into())),
        }
        // Whoever had it before may have renamed or removed it between our open and our lock.
        let ours = file.metadata().map_err(|error| failed(&error))?;
        match fs::metadata(&paths.part) {
            Ok(there) if (there.dev(), there.ino()) == (ours.dev(), ours.ino()) => return Ok(file),
            _ => {}
        }
    }
}

/// Removes the partial file and its journal, unless another process is at work on them.
pub(super) fn discard(paths: &Paths) -> io::Result<()> {
    // Kept open, and so locked, until all is gone.
    let part = File::open(&paths.part);
    let lock = part
        .as_ref()
        .map(|part| flock(part, FlockOperation::NonBlockingLockExclusive));
    match lock {
        Ok(Err(Errno::WOULDBLOCK)) => Ok(()),
        _ => paths.remove_all(),
    }
}

/// Refuses what the volume has no room for.
pub(super) fn check_room(folder: &Path, missing: u64, margin: Option<u64>) -> Result<(), Error> {
    let volume =
        statvfs(folder).map_err(|error| storage("cannot look at", folder, &error.into()))?;
    let (free, margin) = free_and_margin(&volume, margin);
    let wanted = missing.saturating_add(margin);
    if free >= wanted {
        return Ok(());
    }
    Err(Error::new(
        Code::Storage,
        format!(
            "{} has {} free, and {} are missing of the file, with {} to be left",
            folder.display(),
            told(free),
            told(missing),
            told(margin)
        ),
    )
    .hint("Make room, or choose a models folder on another volume.")
    .detail("free_bytes", free)
    .detail("missing_bytes", missing)
    .detail("margin_bytes", margin))
}

/// Whether the volume is still far from full, whoever fills it: other programs, other downloads, or this one, of a file
/// whose length nobody told.
pub(super) fn check_left(file: &File, part: &Path, margin: Option<u64>) -> Result<(), Error> {
    let volume = fstatvfs(file).map_err(|error| storage("cannot look at", part, &error.into()))?;
    let (free, margin) = free_and_margin(&volume, margin);
    let least = margin / LEFT_SHARE;
    if free >= least {
        return Ok(());
    }
    let message = format!(
        "the volume of {} has only {} free, and {} are to be left",
        part.display(),
        told(free),
        told(least)
    );
    Err(Error::new(Code::Storage, message)
        .hint("What has arrived is kept. Make room, then resume the download.")
        .detail("free_bytes", free)
        .detail("margin_bytes", least))
}

fn free_and_margin(stat: &StatVfs, margin: Option<u64>) -> (u64, u64) {
    let size = stat.f_blocks * stat.f_frsize;
    let margin = margin.unwrap_or_else(|| volume::margin(size));
    (stat.f_bavail * stat.f_frsize, margin)
}

#[expect(clippy::cast_precision_loss, reason = "for the eye")]
fn told(bytes: u64) -> String {
    match bytes {
        0..0x4000_0000 => format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)),
        _ => format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)),
    }
}

/// Gives the whole, verified file its name, which must be free, so that it is there after a power cut. `sync` is
/// [`crate::platform::sync`], but for tests.
pub(super) fn land(
    file: &File,
    paths: &Paths,
    dest: &Path,
    folder: &Path,
    sync: &dyn Fn(&File) -> io::Result<()>,
) -> Result<(), Error> {
    let failed = |error: io::Error| storage("cannot finish", dest, &error);
    sync(file).map_err(failed)?;
    match renameat_with(CWD, &paths.part, CWD, dest, RenameFlags::NOREPLACE) {
        Ok(()) => {}
        Err(Errno::EXIST) => return Err(taken(dest)),
        // A volume (exFAT, a network's) that cannot do both at once.
        Err(Errno::INVAL | Errno::NOTSUP | Errno::NOSYS) => {
            if fs::symlink_metadata(dest).is_ok() {
                return Err(taken(dest));
            }
            fs::rename(&paths.part, dest).map_err(failed)?;
        }
        Err(error) => return Err(failed(error.into())),
    }
    // The journal goes last: until the new name is on the disk, a power cut may bring the old one back. And the file is
    // here now, whatever becomes of either.
    let settled = File::open(folder)
        .and_then(|folder| sync(&folder))
        .and_then(|()| paths.remove_journal());
    if let Err(error) = settled {
        tracing::warn!(dest = %dest.display(), %error, "a finished download");
    }
    Ok(())
}

pub(super) fn taken(dest: &Path) -> Error {
    Error::new(
        Code::Storage,
        format!("{} is there already, and is another file", dest.display()),
    )
    .hint("Move it away, or delete it, then try again.")
}

/// The size of a file at `dest` that has the wanted sha256; `None` if there is no file.
///
/// # Errors
/// [`Code::Storage`] if another file has the name, or nobody knows.
pub(super) fn existing(
    dest: &Path,
    sha256: Option<&str>,
    wanted: impl Fn() -> bool,
) -> Result<Option<u64>, Error> {
    match fs::symlink_metadata(dest) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(storage("cannot look at", dest, &error)),
        Ok(_) => {}
    }
    let Some(sha256) = sha256 else {
        return Err(taken(dest));
    };
    let failed = |error: io::Error| storage("cannot read", dest, &error);
    // Looked at before it is opened: a pipe would be waited for.
    let metadata = fs::metadata(dest).map_err(failed)?;
    if !metadata.is_file() {
        return Err(taken(dest));
    }
    let file = File::open(dest).map_err(failed)?;
    match disk::sha256_of(&file, wanted).map_err(failed)? {
        Some(found) if found.eq_ignore_ascii_case(sha256) => Ok(Some(metadata.len())),
        Some(_) => Err(taken(dest)),
        None => Err(super::cancelled()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn a_gibibyte_or_a_twentieth_of_a_small_volume_is_left_free() {
        assert_eq!(volume::margin(500 << 30), 1 << 30);
        assert_eq!(volume::margin(20 << 30), 1 << 30);
        assert_eq!(volume::margin(10 << 30), 1 << 29);
        let stat = statvfs("/").unwrap();
        let size = stat.f_blocks * stat.f_frsize;
        assert_eq!(free_and_margin(&stat, None).1, volume::margin(size));
        assert_eq!(free_and_margin(&stat, Some(7)).1, 7);
    }

    #[test]
    fn a_file_is_synced_then_named_then_its_folder_is_synced_and_last_its_journal_goes() {
        let folder = tempfile::tempdir().unwrap();
        let dest = folder.path().join("model.gguf");
        let paths = Paths::of(&dest);
        let land = |refused: Option<bool>| {
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
            let landed = land(&file, &paths, &dest, folder.path(), &sync).is_ok();
            (landed, steps.into_inner())
        };
        let (before, after) = ((false, false, true), (true, true, true));
        assert_eq!(land(None), (true, vec![before, after]));
        assert!(!paths.journal.exists());
        fs::remove_file(&dest).unwrap();

        // What cannot be synced gets no name; but a file that has its name is there.
        assert_eq!(land(Some(false)), (false, vec![before]));
        assert!(!dest.exists() && paths.journal.exists());
        assert_eq!(land(Some(true)), (true, vec![before, after]));
    }
}

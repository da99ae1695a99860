//! The temporary folders of commands.

use crate::platform;
use rustix::{
    fs::{Mode, OFlags, open},
    process::geteuid,
};
use std::{
    fs::{self, File, Permissions, TryLockError},
    io,
    os::unix::{
        ffi::OsStrExt,
        fs::{MetadataExt, PermissionsExt},
    },
    path::Path,
    thread,
};
use tempfile::{Builder, TempDir};

/// What their names begin with.
const PREFIX: &str = "tierbar-command-";

/// A folder that is deleted when dropped, and if this process is killed first, by the next one that needs a folder.
#[derive(Debug)]
pub(crate) struct TemporaryFolder {
    folder: TempDir,
    /// Locked while the folder is in use.
    _lock: File,
}

impl TemporaryFolder {
    /// Creates a folder by its real path, on a disk if there is one, that this user alone can open.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn create() -> io::Result<Self> {
        // Symbolic links in its path would lead out of what a command may read.
        let around = platform::temporary_folder().canonicalize()?;
        let created = Self::create_in(&around)?;
        thread::spawn(move || delete_left(&around));
        Ok(created)
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    fn create_in(around: &Path) -> io::Result<Self> {
        loop {
            let folder = Builder::new()
                .prefix(PREFIX)
                .permissions(Permissions::from_mode(0o700))
                .tempdir_in(around)?;
            // Until it is locked, another process may take it for one that was left.
            match open_folder(folder.path()) {
                Ok(lock) => {
                    let is_taken = matches!(lock.try_lock(), Err(TryLockError::WouldBlock));
                    if !is_taken && folder.path().exists() {
                        return Ok(Self {
                            folder,
                            _lock: lock,
                        });
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // If it cannot be deleted now, the next one tries it again.
        let _ = remove(self.folder.path());
    }
}

/// Deletes a folder, whatever modes a command has given to the folders in it.
fn remove(folder: &Path) -> io::Result<()> {
    fs::remove_dir_all(folder).or_else(|_| {
        let mut closed = vec![folder.to_owned()];
        while let Some(folder) = closed.pop() {
            // What stays closed is reported when it is deleted.
            let _ = platform::open_up(&folder);
            let Ok(entries) = fs::read_dir(&folder) else {
                continue;
            };
            for entry in entries {
                let Ok(entry) = entry else {
                    break;
                };
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    closed.push(entry.path());
                }
            }
        }
        fs::remove_dir_all(folder)
    })
}

/// Deletes this user's folders whose processes were killed. What cannot be deleted is tried again each time.
fn delete_left(around: &Path) {
    let Ok(entries) = fs::read_dir(around) else {
        return;
    };
    for entry in entries.flatten() {
        if !entry.file_name().as_bytes().starts_with(PREFIX.as_bytes()) {
            continue;
        }
        let path = entry.path();
        // A command may have closed its own.
        let opened = open_folder(&path).or_else(|_| {
            platform::open_up(&path)?;
            open_folder(&path)
        });
        let Ok(folder) = opened else {
            continue;
        };
        let owner = folder.metadata().map(|found| found.uid());
        if owner.is_ok_and(|owner| owner == geteuid().as_raw()) && folder.try_lock().is_ok() {
            let _ = remove(&path);
        }
    }
}

fn open_folder(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(open(path, flags, Mode::empty())?.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn no_other_user_opens_a_temporary_folder() {
        let root = tempfile::tempdir().unwrap();
        let around = root.path().canonicalize().unwrap();
        let folder = TemporaryFolder::create_in(&around).unwrap();
        let mode = folder.path().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{mode:o}");
        assert_eq!(folder.path().canonicalize().unwrap(), folder.path());
    }

    #[test]
    fn what_a_killed_process_left_is_deleted_by_the_next() {
        let root = tempfile::tempdir().unwrap();
        let around = root.path();
        let used = TemporaryFolder::create_in(around).unwrap();
        let left = around.join(format!("{PREFIX}left"));
        fs::create_dir_all(left.join("deep")).unwrap();
        let lock = open_folder(&left).unwrap();
        lock.try_lock().unwrap();
        fs::write(left.join("deep/file"), "").unwrap();
        delete_left(around);
        assert!(left.join("deep/file").exists(), "it is still in use");
        // As the system does when a process ends.
        drop(lock);
        let (other, link) = (around.join("other"), around.join(format!("{PREFIX}link")));
        fs::create_dir(&other).unwrap();
        symlink(&other, &link).unwrap();
        delete_left(around);
        assert!(!left.exists());
        for kept in [used.path(), &other, &link] {
            assert!(kept.exists(), "{}", kept.display());
        }
    }

    #[test]
    fn a_folder_that_a_command_has_closed_is_deleted() {
        let root = tempfile::tempdir().unwrap();
        let around = root.path().canonicalize().unwrap();
        let close = |folder: &Path| {
            let (outer, inner) = (folder.join("a"), folder.join("a/b"));
            fs::create_dir_all(&inner).unwrap();
            fs::write(inner.join("file"), "").unwrap();
            for (path, mode) in [(&*inner, 0o555), (&*outer, 0), (folder, 0)] {
                fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
            }
        };
        let used = TemporaryFolder::create_in(&around).unwrap();
        close(used.path());
        drop(used);
        assert_eq!(fs::read_dir(&around).unwrap().count(), 0, "dropped");
        let left = around.join(format!("{PREFIX}left"));
        fs::create_dir(&left).unwrap();
        close(&left);
        delete_left(&around);
        assert_eq!(fs::read_dir(&around).unwrap().count(), 0, "left");
    }
}

//! One host per data folder: a lock, and a file with the host's address.

use crate::{HostKind, folder, folder::Folder, whole_file};
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    time::Duration,
};
use tierbar_core::{Code, Error};
use tokio::{sync::oneshot, time::sleep};

/// A host that owns a data folder now. Without its token it is `run/host.json`, which is valid only while the lock is held.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningHost {
    pub pid: u32,
    /// The version of Tierbar.
    pub version: String,
    /// Base address of its API.
    pub url: String,
    #[serde(skip)]
    pub token: String,
    pub kind: HostKind,
}

impl RunningHost {
    /// Returns this process as a host, without its token.
    pub(crate) fn this(url: &str, kind: HostKind) -> Self {
        Self {
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            url: url.to_owned(),
            token: String::new(),
            kind,
        }
    }
}

impl std::fmt::Debug for RunningHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunningHost")
            .field("pid", &self.pid)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

/// Returns the host that owns the data folder `home` (the default one if `None`), once it has said its address.
pub fn find_running_host(home: Option<&Path>) -> Option<RunningHost> {
    let home = home.map_or_else(folder::data_folder, Path::to_owned);
    let run = home.join("run");
    // It creates nothing, and holds the lock itself only for a moment.
    let lock = File::open(run.join(LOCK)).ok()?;
    let Err(TryLockError::WouldBlock) = lock.try_lock_shared() else {
        return None;
    };
    let announced = read_announcement(&run)?;
    let token = fs::read_to_string(folder::token_file(&home)).ok()?;
    Some(RunningHost {
        token: token.trim().to_owned(),
        ..announced
    })
}

/// Waits until no host owns the data folder `home` (the default one if `None`).
///
/// # Errors
/// `Storage` if the lock cannot be read.
pub async fn wait_until_released(home: Option<PathBuf>) -> Result<(), Error> {
    let path = home
        .unwrap_or_else(folder::data_folder)
        .join("run")
        .join(LOCK);
    let (done, wait) = oneshot::channel();
    // Not a thread of the runtime, which waits for them when it ends.
    std::thread::spawn(move || {
        let waited = File::open(&path).and_then(|lock| lock.lock_shared());
        let _ = done.send(waited.map_err(|error| {
            let message = format!("cannot wait for {}: {error}", path.display());
            Error::new(Code::Storage, message)
        }));
    });
    wait.await
        .unwrap_or_else(|ended| Err(Error::new(Code::Internal, ended.to_string())))
}

pub(crate) fn open_lock(path: &Path) -> Result<File, Error> {
    let mut options = OpenOptions::new();
    let options = options.create(true).truncate(false).write(true);
    let lock = options.mode(0o600).open(path);
    lock.map_err(|error| not_locked(path, &error))
}

pub(crate) fn not_locked(path: &Path, error: &io::Error) -> Error {
    let message = format!("cannot lock {}: {error}", path.display());
    Error::new(Code::Storage, message)
}

const LOCK: &str = "lock";
const HOST: &str = "host.json";

fn read_announcement(run: &Path) -> Option<RunningHost> {
    serde_json::from_str(&fs::read_to_string(run.join(HOST)).ok()?).ok()
}

/// The right to be the host of a data folder. The system releases it when the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct Ownership {
    run: PathBuf,
    _lock: File,
}

impl Ownership {
    /// # Errors
    /// `AlreadyRunning` with the owner's pid and address; `Storage` if the lock cannot be made.
    pub(crate) async fn take(folder: &Folder) -> Result<Self, Error> {
        let run = folder.run();
        let path = run.join(LOCK);
        let lock = open_lock(&path)?;
        let forget_killed = || fs::remove_file(run.join(HOST));
        // While the folder has no owner: beside the lock of this host, its file would be read as this one's.
        if lock.try_lock_shared().is_ok() {
            let _ = forget_killed();
            let _ = lock.unlock();
        }
        let mut tries = 0..5;
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                // A check for a running host holds the lock for a moment.
                Err(TryLockError::WouldBlock) if tries.next().is_some() => {
                    sleep(Duration::from_millis(20)).await
                }
                Err(TryLockError::WouldBlock) => return Err(already_running_error(folder)),
                Err(TryLockError::Error(error)) => return Err(not_locked(&path, &error)),
            }
        }
        // The owner may have been killed since.
        let _ = forget_killed();
        Ok(Self { run, _lock: lock })
    }

    /// Writes this host's address.
    ///
    /// # Errors
    /// `Storage` if the file cannot be written.
    pub(crate) fn announce(&self, url: &str, kind: HostKind) -> Result<(), Error> {
        let path = self.run.join(HOST);
        let announcement = serde_json::to_vec(&RunningHost::this(url, kind)).unwrap_or_default();
        whole_file::write_private(&path, &announcement, false).map_err(|error| {
            let message = format!("cannot write {}: {error}", path.display());
            Error::new(Code::Storage, message)
                .hint("free up space on its volume, or make the folder writable for your user")
        })
    }
}

impl Drop for Ownership {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.run.join(HOST));
    }
}

fn already_running_error(folder: &Folder) -> Error {
    let home = folder.home().display();
    let Some(owner) = read_announcement(&folder.run()) else {
        let message = format!("another Tierbar is starting with the data folder {home}");
        return Error::new(Code::AlreadyRunning, message);
    };
    let (what, end) = match owner.kind {
        HostKind::App => ("the Tierbar app", "quit it from its menu"),
        HostKind::Serve => ("tierbar serve", "end it with Ctrl-C or `kill`"),
        HostKind::Cli => ("a tierbar command", "wait for its end"),
    };
    let message = format!(
        "{what} is already using the data folder {home}: pid {}, {}",
        owner.pid, owner.url
    );
    Error::new(Code::AlreadyRunning, message)
        .hint(format!(
            "use that one, {end}, or choose another data folder with --home or TIERBAR_HOME"
        ))
        .detail("pid", owner.pid)
        .detail("url", owner.url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_folder_has_one_owner_until_that_ends() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::open(Some(home.path().to_owned())).unwrap();
        fs::write(folder.token(), "a-token\n").unwrap();
        assert!(find_running_host(Some(home.path())).is_none());

        let owner = Ownership::take(&folder).await.unwrap();
        assert!(
            find_running_host(Some(home.path())).is_none(),
            "its address is not known yet"
        );
        let error = Ownership::take(&folder).await.unwrap_err();
        assert_eq!(error.code, Code::AlreadyRunning);
        assert!(error.message.contains("starting"), "{error}");

        owner
            .announce("http://127.0.0.1:7", HostKind::Serve)
            .unwrap();
        let found = find_running_host(Some(home.path())).unwrap();
        assert_eq!(
            (found.pid, &*found.url, &*found.token),
            (std::process::id(), "http://127.0.0.1:7", "a-token")
        );
        let error = Ownership::take(&folder).await.unwrap_err();
        assert_eq!(error.details["pid"], std::process::id());
        assert!(error.message.contains("http://127.0.0.1:7"), "{error}");

        drop(owner);
        assert!(find_running_host(Some(home.path())).is_none());
        Ownership::take(&folder).await.unwrap();
    }

    #[tokio::test]
    async fn files_of_a_killed_host_are_ignored() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::open(Some(home.path().to_owned())).unwrap();
        fs::write(folder.run().join(LOCK), "").unwrap();
        fs::write(
            folder.run().join(HOST),
            r#"{"pid":1,"url":"http://x","kind":"app","version":"0"}"#,
        )
        .unwrap();
        fs::write(folder.token(), "a-token\n").unwrap();
        assert!(find_running_host(Some(home.path())).is_none());
        let _owner = Ownership::take(&folder).await.unwrap();
        assert!(!folder.run().join(HOST).exists());
    }
}

//! One menu-bar app per data folder, even if the app is not its host: a lock, and a socket on which a later start asks for a window.

use crate::{
    folder::{self, Folder},
    ownership::{not_locked, open_lock},
};
use std::{
    fs::{self, File, TryLockError},
    io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    time::Duration,
};
use tempfile::TempDir;
use tierbar_core::{Code, Error};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{UnixListener, UnixStream},
    time::{sleep, timeout},
};

/// The right to be the menu-bar app of a data folder. The system releases it when the process ends.
#[derive(Debug)]
pub struct AppLock {
    _lock: File,
    run: PathBuf,
}

const LOCK: &str = "app.lock";
const SOCKET: &str = "app.sock";
const LONGEST_REQUEST: u64 = 64;
/// macOS has 104 bytes for an address with its final zero, Linux 108.
const LONGEST_ADDRESS: usize = 100;
/// After a later start that could not be heard.
const PAUSE: Duration = Duration::from_millis(500);
const PATIENCE: Duration = Duration::from_secs(2);
const ANSWER: &[u8] = b"shown";

impl AppLock {
    /// Takes it for the data folder `home` (the default one if `None`). Blocking.
    ///
    /// # Errors
    /// `AlreadyRunning` if another app has it; `Storage` if the lock cannot be made.
    pub fn take(home: Option<PathBuf>) -> Result<Self, Error> {
        let run = Folder::open(home)?.run();
        let path = run.join(LOCK);
        let lock = open_lock(&path)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { _lock: lock, run }),
            Err(TryLockError::WouldBlock) => Err(Error::new(
                Code::AlreadyRunning,
                "the Tierbar app is already running",
            )),
            Err(TryLockError::Error(error)) => Err(not_locked(&path, &error)),
        }
    }

    /// Passes on what later starts ask for. Returns only if they cannot be heard.
    ///
    /// # Errors
    /// If the socket cannot be made.
    pub async fn hear(&self, mut asked: impl FnMut(&str)) -> io::Result<()> {
        // An app that was killed has left it.
        let _ = fs::remove_file(self.run.join(SOCKET));
        let listener = {
            let (address, _short) = address(&self.run)?;
            UnixListener::bind(address)?
        };
        loop {
            let Ok((mut later, _)) = listener.accept().await else {
                // It is out of files, as a rule.
                sleep(PAUSE).await;
                continue;
            };
            let hear = async {
                let mut request = String::new();
                (&mut later)
                    .take(LONGEST_REQUEST)
                    .read_to_string(&mut request)
                    .await?;
                asked(&request);
                later.write_all(ANSWER).await
            };
            // One that says nothing does not keep the next waiting.
            let _ = timeout(PATIENCE, hear).await;
        }
    }
}

/// Asks the menu-bar app of the data folder `home` (the default one if `None`) for something.
///
/// # Errors
/// `NotFound` if it does not answer.
pub async fn ask_app(home: Option<&Path>, request: &str) -> Result<(), Error> {
    let home = home.map_or_else(folder::data_folder, Path::to_owned);
    let ask = async {
        let (address, _short) = address(&home.join("run"))?;
        let mut app = UnixStream::connect(address).await?;
        app.write_all(request.as_bytes()).await?;
        app.shutdown().await?;
        let mut answer = Vec::new();
        app.take(LONGEST_REQUEST).read_to_end(&mut answer).await?;
        Ok::<_, io::Error>(answer)
    };
    let why = match timeout(PATIENCE, ask).await {
        Ok(Ok(answer)) if answer == ANSWER => return Ok(()),
        Ok(Ok(_)) => "it broke off".to_owned(),
        Ok(Err(error)) => error.to_string(),
        Err(late) => late.to_string(),
    };
    let message = format!("the Tierbar app does not answer: {why}");
    Err(Error::new(Code::NotFound, message))
}

/// The socket's path, short enough for an address: through a link in a folder of its own, which is removed when it is dropped.
fn address(run: &Path) -> io::Result<(PathBuf, Option<TempDir>)> {
    let path = run.join(SOCKET);
    if path.as_os_str().len() <= LONGEST_ADDRESS {
        return Ok((path, None));
    }
    let folder = tempfile::Builder::new()
        .prefix("tierbar-")
        .tempdir_in("/tmp")?;
    let link = folder.path().join("run");
    symlink(fs::canonicalize(run)?, &link)?;
    Ok((link.join(SOCKET), Some(folder)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_app_is_heard_in_a_folder_with_a_long_path() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().join("a".repeat(120));
        let app = AppLock::take(Some(home.clone())).unwrap();
        let hearing = app.hear(|_| {});
        let asking = async {
            while ask_app(Some(&home), "chat").await.is_err() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::select! {
            biased;
            ended = hearing => panic!("{ended:?}"),
            () = asking => {}
        }
    }

    #[tokio::test]
    async fn a_folder_has_one_app_which_hears_later_starts() {
        let home = tempfile::tempdir().unwrap();
        let take = || AppLock::take(Some(home.path().to_owned()));
        let first = take().unwrap();
        assert_eq!(take().unwrap_err().code, Code::AlreadyRunning);
        let unheard = ask_app(Some(home.path()), "chat").await.unwrap_err();
        assert_eq!(unheard.code, Code::NotFound);

        let mut asked = Vec::new();
        let hearing = first.hear(|request| asked.push(request.to_owned()));
        let asking = async {
            // A silent connection must not block the others.
            let _silent = UnixStream::connect(home.path().join("run").join(SOCKET)).await;
            while ask_app(Some(home.path()), "settings").await.is_err() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::select! {
            biased;
            ended = hearing => panic!("{ended:?}"),
            () = asking => {}
        }
        assert!(
            asked.iter().all(|request| request == "settings"),
            "{asked:?}"
        );
        assert!(!asked.is_empty());
        drop(first);

        // The socket that is left is no obstacle.
        let second = take().unwrap();
        let hearing = second.hear(|_| {});
        tokio::select! {
            biased;
            ended = hearing => panic!("{ended:?}"),
            asked = ask_app(Some(home.path()), "chat") => asked.unwrap(),
        }
    }
}

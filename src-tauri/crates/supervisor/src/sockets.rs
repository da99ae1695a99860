//! The folder of the workers' sockets, which only its owner can enter, with short enough paths.

use std::{
    fs::{self, DirBuilder, Permissions},
    io,
    os::unix::{
        ffi::OsStrExt,
        fs::{DirBuilderExt, PermissionsExt},
    },
    path::{Path, PathBuf},
};
use tempfile::TempDir;
use tierbar_core::{Code, Error, TierId};

/// macOS allows 104 bytes for a socket's address, including the final zero; Linux 108.
const LONGEST_PATH: usize = 100;

#[derive(Debug)]
pub(crate) struct Sockets {
    dir: PathBuf,
    /// Used when `dir` is too long for an address; created when first needed.
    short: Option<TempDir>,
}

impl Sockets {
    /// Creates the folder, and removes sockets of a killed host.
    pub(crate) fn open(dir: &Path) -> Result<Self, Error> {
        private_dir(dir).map_err(|error| storage_error("the sockets' folder", dir, &error))?;
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            if is_worker_socket(&entry.path()) {
                remove(&entry.path());
            }
        }
        Ok(Self {
            dir: dir.to_owned(),
            short: None,
        })
    }

    /// Returns the address for the tier's `worker`-th process.
    pub(crate) fn path(&mut self, tier: &TierId, worker: u64) -> Result<PathBuf, Error> {
        let name = format!("{tier}-{worker}.sock");
        let path = self.dir.join(&name);
        if path.as_os_str().as_bytes().len() <= LONGEST_PATH {
            return Ok(path);
        }
        let short = match self.short.take() {
            Some(short) => short,
            None => short_dir(name.len())?,
        };
        let path = short.path().join(&name);
        self.short = Some(short);
        Ok(path)
    }
}

/// Creates a private folder in the system's temporary one, or in `/tmp` if that path is too long as well.
fn short_dir(name: usize) -> Result<TempDir, Error> {
    let mut builder = tempfile::Builder::new();
    builder
        .prefix("tierbar-")
        .permissions(Permissions::from_mode(0o700));
    let temp = std::env::temp_dir();
    let fits = |dir: &TempDir| dir.path().as_os_str().as_bytes().len() + 1 + name <= LONGEST_PATH;
    match builder.tempdir_in(&temp) {
        Ok(dir) if fits(&dir) => Ok(dir),
        _ => builder
            .tempdir_in("/tmp")
            .map_err(|error| storage_error("a folder for sockets", Path::new("/tmp"), &error)),
    }
}

fn private_dir(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    // It may have existed with other permissions.
    fs::set_permissions(dir, Permissions::from_mode(0o700))
}

fn is_worker_socket(path: &Path) -> bool {
    let stem = path
        .extension()
        .is_some_and(|extension| extension == "sock");
    let name = path.file_stem().and_then(|stem| stem.to_str());
    stem && name
        .and_then(|name| name.rsplit_once('-'))
        .is_some_and(|(tier, worker)| TierId::new(tier).is_ok() && worker.parse::<u64>().is_ok())
}

/// Removes a socket, if its worker has not removed it already.
pub(crate) fn remove(socket: &Path) {
    if let Err(error) = fs::remove_file(socket)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(socket = %socket.display(), %error, "a worker's socket could not be removed");
    }
}

pub(crate) fn storage_error(what: &str, path: &Path, error: &io::Error) -> Error {
    let message = format!("{what} {} cannot be created: {error}", path.display());
    Error::new(Code::Storage, message)
        .hint("check that the folder is on a volume that is not full and that you may write to it")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tier() -> TierId {
        TierId::new("a-tier-with-a-name-of-32-letters").unwrap()
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn the_folder_is_made_private() {
        let home = tempfile::tempdir().unwrap();
        let run = home.path().join("run");
        fs::create_dir(&run).unwrap();
        fs::set_permissions(&run, Permissions::from_mode(0o755)).unwrap();
        Sockets::open(&run).unwrap();
        assert_eq!(mode(&run), 0o700);
    }

    #[test]
    fn a_path_too_long_for_a_socket_is_replaced() {
        let home = tempfile::tempdir().unwrap();
        let run = home.path().join("long".repeat(30)).join("run");
        let mut sockets = Sockets::open(&run).unwrap();
        let path = sockets.path(&tier(), u64::from(u32::MAX)).unwrap();
        assert!(path.as_os_str().len() <= LONGEST_PATH, "{}", path.display());
        let dir = path.parent().unwrap().to_owned();
        assert_eq!(mode(&dir), 0o700);
        assert_eq!(sockets.path(&tier(), 2).unwrap().parent(), Some(&*dir));
        drop(sockets);
        assert!(!dir.exists());
    }

    #[test]
    fn only_sockets_of_a_killed_host_are_removed() {
        let home = tempfile::tempdir().unwrap();
        for name in ["fast-7.sock", "app.sock", "lock", "fast-x.sock"] {
            fs::write(home.path().join(name), "").unwrap();
        }
        Sockets::open(home.path()).unwrap();
        let mut left: Vec<_> = fs::read_dir(home.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, ["app.sock", "fast-x.sock", "lock"]);
    }

    #[test]
    fn a_folder_that_cannot_be_created_is_named() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("file");
        fs::write(&file, "").unwrap();
        let error = Sockets::open(&file.join("run")).unwrap_err();
        assert_eq!(error.code, Code::Storage);
        assert!(error.message.contains("file/run"), "{error}");
    }
}

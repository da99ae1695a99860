//! Secrets in one JSON file that only its owner may read, replaced as a whole.

use crate::{Name, Source, Store};
use parking_lot::Mutex;
use secrecy::{ExposeSecret, SecretString};
use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::PathBuf,
};
use tierbar_core::{Code, Error};

const MAX_FILE_BYTES: u64 = 64 << 10;
const OWNER_ONLY: u32 = 0o600;

#[derive(Debug)]
pub(crate) struct FileStore {
    path: PathBuf,
    /// Held while the file is read, changed and written.
    changing: Mutex<()>,
}

impl FileStore {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            changing: Mutex::default(),
        }
    }

    fn failed(&self, what: &str, why: impl std::fmt::Display) -> Error {
        Error::new(
            Code::Storage,
            format!(
                "the secrets in {} cannot be {what}: {why}",
                self.path.display()
            ),
        )
    }

    fn load(&self) -> Result<BTreeMap<String, SecretString>, Error> {
        let file = match fs::OpenOptions::new()
            .read(true)
            // A link could lead to a file that others write; a pipe would wait for its writer.
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(&self.path)
        {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            Err(error) => return Err(self.failed("read", error)),
        };
        let mut bytes = Vec::new();
        let mut read = || -> io::Result<()> {
            let metadata = file.metadata()?;
            if !metadata.is_file() {
                return Err(io::Error::other("it is not a file"));
            }
            if metadata.permissions().mode() & 0o077 != 0 {
                file.set_permissions(fs::Permissions::from_mode(OWNER_ONLY))?;
                tracing::warn!(
                    "{} was readable by other users of this computer and is now readable only by you; replace its tokens if \
                     others may have read them",
                    self.path.display()
                );
            }
            (&file).take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
            Ok(())
        };
        read().map_err(|error| self.failed("read", error))?;
        // serde_json's own message may quote a value.
        serde_json::from_slice(&bytes).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            self.failed(
                "read",
                format_args!("it is damaged at line {line}, column {column}"),
            )
            .hint("delete the file and enter your tokens again")
        })
    }

    fn write(&self, secrets: &BTreeMap<String, SecretString>) -> Result<(), Error> {
        let exposed: BTreeMap<_, _> = secrets
            .iter()
            .map(|(name, secret)| (name, secret.expose_secret()))
            .collect();
        let write = || -> io::Result<()> {
            let folder = self.path.parent().unwrap_or(&self.path);
            // Created with mode 0600, independent of the umask.
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            file.write_all(&serde_json::to_vec_pretty(&exposed)?)?;
            file.as_file().sync_all()?;
            file.persist(&self.path)?;
            Ok(())
        };
        write().map_err(|error| self.failed("kept", error))
    }
}

impl Store for FileStore {
    fn source(&self) -> Source {
        Source::File
    }

    fn get(&self, name: &Name) -> Result<Option<SecretString>, Error> {
        Ok(self.load()?.remove(name.as_str()))
    }

    fn set(&self, name: &Name, value: &SecretString) -> Result<(), Error> {
        let _changing = self.changing.lock();
        let mut secrets = self.load()?;
        secrets.insert(name.as_str().to_owned(), value.clone());
        self.write(&secrets)
    }

    fn remove(&self, name: &Name) -> Result<(), Error> {
        let _changing = self.changing.lock();
        let mut secrets = self.load()?;
        if secrets.remove(name.as_str()).is_some() {
            self.write(&secrets)?;
        }
        Ok(())
    }
}

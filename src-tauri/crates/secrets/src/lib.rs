//! Keys and tokens, kept where the system keeps them; never in the configuration, the database, argv or a log.
//!
//! A secret is looked for in the environment, then in the store (the Keychain on macOS, elsewhere a file in the data
//! folder that only its owner may read), then where the program that it belongs to keeps it. All of it is blocking
//! file work: an async caller goes through `spawn_blocking`.

mod file;
#[cfg(target_vendor = "apple")]
mod keychain;
mod name;
mod reads;

pub use name::Name;

use reads::Reads;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use std::{
    ffi::OsString,
    fmt, fs,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tierbar_core::{Code, Error};

/// No token that is known is longer than a few hundred bytes.
const MAX_BYTES: usize = 4096;
/// In characters. A stolen upload allows unlimited guesses.
const SHORTEST_PASSPHRASE: usize = 12;

/// With `file`, secrets are kept in the file on every system: for a Mac without a login session, and for tests.
const STORE_VARIABLE: &str = "TIERBAR_SECRETS";

/// Where a secret was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = SecretSource)]
pub enum Source {
    Keychain,
    File,
    Environment,
    /// The file in which `hf auth login` keeps its token.
    HuggingFace,
}

/// Values of environment variables.
pub type Environment = Arc<dyn Fn(&str) -> Option<OsString> + Send + Sync>;

/// Keeps secrets of one kind of place.
trait Store: Send + Sync {
    fn source(&self) -> Source;
    fn get(&self, name: &Name) -> Result<Option<SecretString>, Error>;
    fn set(&self, name: &Name, value: &SecretString) -> Result<(), Error>;
    /// Removing what is not there is no error.
    fn remove(&self, name: &Name) -> Result<(), Error>;
}

/// The secrets of one data folder. Clones share their store.
#[derive(Clone)]
pub struct Secrets {
    store: Arc<dyn Store>,
    reads: Arc<Reads>,
    environment: Environment,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets")
            .field("store", &self.store.source())
            .finish_non_exhaustive()
    }
}

impl Secrets {
    /// The secrets of the data folder `home`, with this process's environment.
    pub fn open(home: &Path) -> Self {
        Self::with(home, Arc::new(|name: &str| std::env::var_os(name)))
    }

    /// As [`Secrets::open`], with another environment.
    pub fn with(home: &Path, environment: Environment) -> Self {
        let file = || Arc::new(file::FileStore::new(home.join("secrets.json")));
        let store = if environment(STORE_VARIABLE).is_some_and(|store| store == "file") {
            file()
        } else {
            system_store().unwrap_or_else(|| file())
        };
        Self::with_store(store, reads::DEADLINE, environment)
    }

    fn with_store(store: Arc<dyn Store>, deadline: Duration, environment: Environment) -> Self {
        Self {
            reads: Reads::new(Arc::clone(&store), deadline),
            store,
            environment,
        }
    }

    /// The secret, from the first place that has it.
    ///
    /// # Errors
    /// [`Code::Storage`] if the store cannot be read, or has not answered within ten seconds.
    pub fn get(&self, name: &Name) -> Result<Option<SecretString>, Error> {
        Ok(self.find(name)?.map(|(secret, _)| secret))
    }

    /// Returns where [`Secrets::get`] finds the secret.
    ///
    /// # Errors
    /// As [`Secrets::get`].
    pub fn source(&self, name: &Name) -> Result<Option<Source>, Error> {
        Ok(self.find(name)?.map(|(_, source)| source))
    }

    /// Saves a secret in the store, without surrounding spaces.
    ///
    /// # Errors
    /// Those of [`Secrets::check`]; [`Code::Storage`] if the store refuses.
    pub fn set(&self, name: &Name, value: &SecretString) -> Result<(), Error> {
        let set = self.store.set(name, &Self::check(name, value)?);
        self.reads.forget(name);
        set
    }

    /// Returns a secret as [`Secrets::set`] saves it, without surrounding spaces.
    ///
    /// # Errors
    /// [`Code::BadRequest`] for what cannot be a token, which the message does not quote.
    pub fn check(name: &Name, value: &SecretString) -> Result<SecretString, Error> {
        let value = value.expose_secret();
        let (checked, what, hint) = match name {
            Name::ContextPassphrase => (
                checked_passphrase(value),
                "the passphrase".to_owned(),
                "use several words that you keep elsewhere as well: without them, uploaded contexts are lost",
            ),
            _ => (
                checked(value),
                format!("the token for {name}"),
                "copy the complete token again, without other text",
            ),
        };
        checked.map_err(|problem| {
            let message = format!("{what} is invalid: {problem}");
            Error::new(Code::BadRequest, message).hint(hint)
        })
    }

    /// Removes a secret from the store. The environment and other programs keep theirs.
    ///
    /// # Errors
    /// [`Code::Storage`] if the store refuses.
    pub fn remove(&self, name: &Name) -> Result<(), Error> {
        let removed = self.store.remove(name);
        self.reads.forget(name);
        removed
    }

    fn find(&self, name: &Name) -> Result<Option<(SecretString, Source)>, Error> {
        for variable in name.variables() {
            let Some(value) = (self.environment)(variable).filter(|value| !value.is_empty()) else {
                continue;
            };
            // Invalid UTF-8 is reported as an invalid character.
            match checked(&value.to_string_lossy()) {
                Ok(secret) => return Ok(Some((secret, Source::Environment))),
                Err(problem) => tracing::warn!("{variable} is not used: {problem}"),
            }
        }
        if let Some(secret) = self.reads.get(name)? {
            return Ok(Some((secret, self.store.source())));
        }
        Ok(name
            .own_file(&self.environment)
            .and_then(|path| read_token(&path))
            .map(|secret| (secret, Source::HuggingFace)))
    }
}

/// Returns the Keychain. Elsewhere there is none: a secret service is missing on servers and in tests, and prompts for a password.
fn system_store() -> Option<Arc<dyn Store>> {
    #[cfg(target_vendor = "apple")]
    return keychain::open();
    #[cfg(not(target_vendor = "apple"))]
    None
}

/// Reads a file that holds only a token. Returns `None` if there is no usable one.
fn read_token(path: &PathBuf) -> Option<SecretString> {
    let shown = path.display();
    let read = || -> io::Result<String> {
        // Checked before it is opened: opening a pipe would block.
        if !fs::metadata(path)?.is_file() {
            return Err(io::Error::other("it is not a file"));
        }
        let mut text = String::new();
        fs::File::open(path)?
            .take(MAX_BYTES as u64 + 1)
            .read_to_string(&mut text)?;
        Ok(text)
    };
    let text = match read() {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => {
            tracing::warn!("the token in {shown} is not used: {error}");
            return None;
        }
    };
    checked(&text)
        .inspect_err(|problem| tracing::warn!("the token in {shown} is not used: {problem}"))
        .ok()
}

/// Returns the value if it can be sent in a header, or the problem, which does not quote the value.
fn checked(value: &str) -> Result<SecretString, &'static str> {
    let value = value.trim();
    if value.is_empty() {
        Err("it is empty")
    } else if value.len() > MAX_BYTES {
        Err("it is longer than 4096 bytes")
    } else if !value.bytes().all(|byte| byte.is_ascii_graphic()) {
        Err("it contains spaces or other invalid characters")
    } else {
        Ok(value.into())
    }
}

/// Returns the passphrase, which a person makes up, or the problem.
fn checked_passphrase(value: &str) -> Result<SecretString, &'static str> {
    let value = value.trim();
    if value.chars().count() < SHORTEST_PASSPHRASE {
        Err("it has fewer than 12 characters")
    } else if value.len() > MAX_BYTES {
        Err("it is longer than 4096 bytes")
    } else if value.contains(char::is_control) {
        Err("it has more than one line, or other control characters")
    } else {
        Ok(value.into())
    }
}

#[cfg(test)]
mod tests;

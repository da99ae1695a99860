//! The owner of `config.toml`: it reads, watches and edits the file, and keeps the current configuration.
//!
//! An invalid file never replaces a valid configuration: at start it is refused, later the last configuration stays in
//! effect and a notice reports the error.

mod edit;
mod keys;
mod read;
mod watch;

pub(crate) use watch::{ConfigWatch, watch};

use crate::whole_file;
use parking_lot::Mutex;
use read::ParsedConfig;
pub(crate) use read::parse;
use serde_json::{Map, Value};
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};
use tierbar_core::{Code, Config, Error, setup::STARTER};

#[derive(Debug)]
pub(crate) struct ConfigFile {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The file as last read, valid or not.
    text: String,
    parsed: ParsedConfig,
}

impl ConfigFile {
    /// Reads the file, or writes a commented one. Blocking.
    ///
    /// # Errors
    /// `ConfigInvalid` with the line; those of [`read_text`]; `Storage` if the file cannot be written.
    pub(crate) fn open(path: PathBuf, models: &Path) -> Result<Self, Error> {
        let text = match read_text(&path)? {
            Some(text) => text,
            None => {
                let text = first_config(models);
                write(&path, &text)?;
                text
            }
        };
        let parsed = parse(&text)?;
        Ok(Self {
            path,
            state: Mutex::new(State { text, parsed }),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn config(&self) -> Arc<Config> {
        Arc::clone(&self.state.lock().parsed.config)
    }

    pub(crate) fn notices(&self) -> Vec<String> {
        self.state.lock().parsed.notices.clone()
    }

    /// Reads the file again; returns `false` if it has not changed. Blocking.
    pub(crate) fn reload(&self) -> bool {
        let mut state = self.state.lock();
        let read = read_text(&self.path).and_then(|text| text.ok_or_else(|| gone(&self.path)));
        if read.as_ref().is_ok_and(|text| *text == state.text) {
            return false;
        }
        let parsed = read.as_ref().map_err(Error::clone);
        let parsed = parsed.and_then(|text| parse(text));
        state.text = read.unwrap_or_default();
        match parsed {
            Ok(parsed) => state.parsed = parsed,
            Err(error) => {
                state.parsed.notices = vec![format!(
                    "{error}. The previous configuration stays in effect."
                )]
            }
        }
        true
    }

    /// Merges a partial configuration into the file if the result passes the check; comments and unknown keys are kept.
    /// Blocking.
    ///
    /// # Errors
    /// `BadRequest` for an unknown key, `ConfigInvalid` for an invalid value, or if the file is already invalid; the
    /// check's errors; `Storage` if it cannot be written. The file is then unchanged.
    pub(crate) fn patch(
        &self,
        patch: &Map<String, Value>,
        check: impl FnOnce(&Config) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut state = self.state.lock();
        let (before, patched) = self.patched(&state, patch)?;
        check(&patched.parsed.config)?;
        if patched.text != before {
            write(&self.path, &patched.text)?;
        }
        *state = patched;
        Ok(())
    }

    /// Returns the configuration as [`Self::patch`] would leave it. Blocking.
    ///
    /// # Errors
    /// Those of [`Self::patch`].
    pub(crate) fn preview(
        &self,
        patch: &Map<String, Value>,
        check: impl FnOnce(&Config) -> Result<(), Error>,
    ) -> Result<Arc<Config>, Error> {
        let (_, patched) = self.patched(&self.state.lock(), patch)?;
        check(&patched.parsed.config)?;
        Ok(patched.parsed.config)
    }

    /// The file's text, and what a patch makes of it.
    fn patched(&self, state: &State, patch: &Map<String, Value>) -> Result<(String, State), Error> {
        let before = match read_text(&self.path)? {
            Some(text) => text,
            // The file was deleted by hand: use the current configuration, which the user sees.
            None => toml::to_string(&*state.parsed.config)
                .map_err(|error| Error::new(Code::Internal, error.to_string()))?,
        };
        let text = edit::merge(&before, patch)?;
        let parsed = parse(&text).map_err(|error| match parse(&before) {
            // The invalid value came with the patch, so its line means nothing to the sender.
            Ok(_) => edit::without_line(error),
            Err(broken) => broken,
        })?;
        Ok((before, State { text, parsed }))
    }
}

/// Returns a file with three tiers; the first has the starter model if it is installed.
fn first_config(models: &Path) -> String {
    let starter = match models.join(STARTER).is_file() {
        true => STARTER,
        false => "",
    };
    include_str!("config/template.toml").replace("{starter}", starter)
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    whole_file::replace(path, text).map_err(|error| {
        let message = format!("{} cannot be written: {error}", path.display());
        Error::new(Code::Storage, message).hint("free up space, or make the file writable")
    })
}

/// Returns the file's text; `None` if there is no file. Blocking.
///
/// # Errors
/// `ConfigInvalid` for a text in another encoding than UTF-8; `Storage` if the file cannot be read.
pub(crate) fn read_text(path: &Path) -> Result<Option<String>, Error> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            let message = format!("{} cannot be read: {error}", path.display());
            return Err(Error::new(Code::Storage, message));
        }
    };
    // UTF-16 of plain letters is UTF-8, too, with a zero behind or before each.
    let text = String::from_utf8(bytes).ok();
    match text.filter(|text| !text.contains('\0')) {
        Some(text) => Ok(Some(text)),
        None => {
            let message = format!("{} is not a text in UTF-8", path.display());
            Err(Error::new(Code::ConfigInvalid, message)
                .hint("save it again with the encoding UTF-8, not UTF-16 or \"Unicode\""))
        }
    }
}

fn gone(path: &Path) -> Error {
    let message = format!("{} cannot be read: it does not exist", path.display());
    Error::new(Code::Storage, message)
}

#[cfg(test)]
mod tests;

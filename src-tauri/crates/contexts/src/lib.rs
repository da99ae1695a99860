//! Saved contexts: conversations whose KV cache is on disk, so that they continue without another prefill.
//!
//! Each is one file in one folder. The worker writes the state in llama.cpp's format (`llama_state_seq_save_file`);
//! [`Draft::seal`] compresses it, adds a description and a checksum, and only then gives the file its name, so that named files
//! are complete. [`StoreKey`] encrypts a whole file for a store that others can read. The host lists and deletes them,
//! the worker reads them. No lock is needed: files are renamed and unlinked, and an open file stays readable.

mod compact;
mod draft;
mod file;
mod half;
mod key;
mod layout;
mod packed;
mod sealed;
mod swapped;

pub use draft::Draft;
pub use file::{State, read_earlier_end, state, verify};
pub use half::{from_float, to_float};
pub use key::{Difference, Key, fingerprint, hash};
pub use layout::{Kind, Rows, layout};
pub use sealed::{Salt, SealedContext, StoreKey};
pub use swapped::SwapFolder;

use serde::{Deserialize, Serialize};
use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};
use tempfile::TempPath;
use tierbar_core::{Code, Error, ModelId, bad_request, config::ContextForm};

/// Of a name, in bytes.
const LONGEST_NAME: usize = 200;
const ENDING: &str = "context";

/// What is known of a saved context without reading its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextDescription {
    pub name: String,
    /// The model's id when it was saved.
    pub model: ModelId,
    /// How many tokens need not be read again.
    pub tokens: usize,
    /// Of the whole file.
    #[serde(default)]
    pub bytes: u64,
    /// Seconds since 1970.
    pub created: u64,
    pub key: Key,
    /// For a model that forgets: it can be gone back to there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<EarlierEnd>,
    /// How the state is compressed; `None` if it is as llama.cpp has written it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packed: Option<Compression>,
}

impl ContextDescription {
    /// The bytes of the state that is in memory once it is loaded.
    pub fn raw_bytes(&self) -> u64 {
        self.packed.map_or(self.bytes, |packed| packed.raw_bytes)
    }

    pub fn form(&self) -> ContextForm {
        self.packed.map(|packed| packed.form).unwrap_or_default()
    }
}

/// How a state is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compression {
    /// Of the state, before.
    pub raw_bytes: u64,
    /// Whether the bytes of each half float are separated first.
    pub halves: bool,
    #[serde(default, skip_serializing_if = "is_exact")]
    pub form: ContextForm,
}

fn is_exact(form: &ContextForm) -> bool {
    *form == ContextForm::Exact
}

/// An earlier end of a state, kept behind it: what the model had in memory then and has forgotten since.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlierEnd {
    /// How many it held then.
    pub tokens: usize,
    /// What was forgotten takes so many.
    pub bytes: u64,
}

/// The folder of saved contexts.
#[derive(Debug, Clone)]
pub struct Contexts(PathBuf);

impl Contexts {
    /// The folder need not exist yet.
    pub fn new(folder: PathBuf) -> Self {
        Self(folder)
    }

    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// Where a context of this name lies, if there is one.
    pub fn path(&self, name: &str) -> PathBuf {
        // Any name can be a file's in this way, on any file system.
        self.0.join(hash(name)).with_extension(ENDING)
    }

    /// Returns all saved contexts, newest first. Other files, and those damaged at the end, are skipped.
    ///
    /// # Errors
    /// [`Code::Storage`] if the folder cannot be read.
    pub fn list(&self) -> Result<Vec<ContextDescription>, Error> {
        let entries = fs::read_dir(&self.0).and_then(Iterator::collect);
        let entries: Vec<fs::DirEntry> = match entries {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            entries => entries.map_err(|error| storage_error("cannot read", &self.0, &error))?,
        };
        let saved = entries.into_iter().filter_map(|entry| {
            let path = entry.path();
            path.extension().filter(|end| *end == ENDING)?;
            let saved = file::read_description(&path).ok()?;
            // A copy under another file name would be there twice.
            (self.path(&saved.name) == path).then_some(saved)
        });
        let mut all: Vec<_> = saved.collect();
        all.sort_by(|a, b| (b.created, &a.name).cmp(&(a.created, &b.name)));
        Ok(all)
    }

    /// # Errors
    /// [`Code::ContextUnknown`] if there is none of this name, [`Code::Corrupt`] if its end is damaged.
    pub fn get(&self, name: &str) -> Result<ContextDescription, Error> {
        file::read_description(&self.path(name)).map_err(|error| self.unread(name, &error))
    }

    /// The tokens that a context's state holds.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn tokens(&self, name: &str) -> Result<Vec<i32>, Error> {
        file::tokens(&self.path(name)).map_err(|error| self.unread(name, &error))
    }

    /// Reads the whole file against its checksum.
    ///
    /// # Errors
    /// As [`Self::get`]; [`Code::Corrupt`] for damage anywhere.
    pub fn check(&self, name: &str) -> Result<(), Error> {
        file::check(&self.path(name)).map_err(|error| self.unread(name, &error))
    }

    /// # Errors
    /// [`Code::ContextUnknown`] if there is none of this name, [`Code::Storage`] if it cannot be removed.
    pub fn remove(&self, name: &str) -> Result<(), Error> {
        let path = self.path(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(self.unknown(name)),
            removed => removed.map_err(|error| storage_error("cannot remove", &path, &error)),
        }
    }

    /// Starts a context: creates a temporary file for the state, which is removed unless it is sealed.
    ///
    /// # Errors
    /// [`Code::BadRequest`] for a name that cannot be, [`Code::Storage`] if the folder cannot be written.
    pub fn draft(&self, name: &str) -> Result<Draft, Error> {
        check_name(name)?;
        draft::create_private(&self.0)
            .and_then(|()| Draft::new(&self.0, name, self.path(name), true))
            .map_err(|error| storage_error("cannot write to", &self.0, &error))
    }

    /// A temporary file in the folder, which is removed unless it is adopted.
    ///
    /// # Errors
    /// [`Code::Storage`] if the folder cannot be written, or has no room for so many bytes.
    pub fn temporary(&self, bytes: u64) -> Result<TempPath, Error> {
        let path = draft::create_private(&self.0)
            .and_then(|()| draft::draft_in(&self.0))
            .map_err(|error| storage_error("cannot write to", &self.0, &error))?;
        draft::check_room(&path, bytes)?;
        Ok(path)
    }

    /// Makes a file that came from elsewhere the context of this name, in place of one that has it.
    ///
    /// # Errors
    /// [`Code::Corrupt`] if it is no whole context of this name; [`Code::Storage`] if it cannot be kept.
    pub fn adopt(&self, name: &str, file: TempPath) -> Result<ContextDescription, Error> {
        check_name(name)?;
        let read = file::check(&file).and_then(|()| file::read_description(&file));
        let saved = read.map_err(|error| unread_error(name, &file, &error))?;
        if saved.name != name {
            return Err(damaged_error(name));
        }
        let dest = self.path(name);
        fs::File::open(&file)
            .and_then(|written| written.sync_all())
            .and_then(|()| draft::persist(file, &dest, true, true))
            .map_err(|error| storage_error("cannot write", &dest, &error))?;
        Ok(saved)
    }

    /// Encrypts a context for a store, into a temporary file.
    ///
    /// # Errors
    /// As [`Self::check`]; [`Code::Storage`] if there is no room.
    pub fn seal(
        &self,
        name: &str,
        key: &StoreKey,
    ) -> Result<(ContextDescription, TempPath), Error> {
        let saved = self.get(name)?;
        self.check(name)?;
        // Tags take less than a thousandth.
        let sealed = self.temporary(saved.bytes + saved.bytes / 1000 + StoreKey::OPENING)?;
        let write = || {
            let mut file = fs::File::open(self.path(name))?;
            let mut out = draft::writer(&sealed)?;
            key.seal(&saved, &mut file, &mut out)?;
            out.flush()
        };
        write().map_err(|error| storage_error("cannot write", &sealed, &error))?;
        Ok((saved, sealed))
    }

    /// Decrypts a file from a store, and makes it the context that it was expected to be.
    ///
    /// # Errors
    /// Those of [`StoreKey::open`], [`SealedContext::unseal`] and [`Self::adopt`]; [`Code::Corrupt`] if it is another one. Nothing is
    /// replaced then.
    pub fn unseal(
        &self,
        sealed: &Path,
        expected: &ContextDescription,
        key: &StoreKey,
    ) -> Result<ContextDescription, Error> {
        let unreadable = |error: io::Error| storage_error("cannot read", sealed, &error);
        let file = io::BufReader::new(fs::File::open(sealed).map_err(unreadable)?);
        let sealed = key.open(file)?;
        if sealed.saved() != expected {
            return Err(sealed::corrupt("was replaced while it was downloaded"));
        }
        let plain = self.temporary(expected.bytes)?;
        let unwritten = |error: io::Error| storage_error("cannot write", &plain, &error);
        let mut out = draft::writer(&plain).map_err(unwritten)?;
        sealed.unseal(&mut out)?;
        out.flush().map_err(unwritten)?;
        drop(out);
        self.adopt(&expected.name, plain)
    }

    /// Removes unfinished drafts. No draft may be in use.
    pub fn sweep(&self) {
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            if draft::is_draft(&entry.file_name()) {
                let _gone = fs::remove_file(entry.path());
            }
        }
    }

    /// Returns when the list of contexts last changed.
    pub fn changed(&self) -> Option<SystemTime> {
        fs::metadata(&self.0)
            .and_then(|folder| folder.modified())
            .ok()
    }

    fn unread(&self, name: &str, error: &io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::NotFound => self.unknown(name),
            _ => unread_error(name, &self.path(name), error),
        }
    }

    fn unknown(&self, name: &str) -> Error {
        let all = self.list().unwrap_or_default();
        let names: Vec<_> = all.into_iter().take(20).map(|saved| saved.name).collect();
        let shown: String = name.chars().take(LONGEST_NAME).collect();
        let message = format!("there is no saved context \"{shown}\"");
        Error::new(Code::ContextUnknown, message).hint(match names.as_slice() {
            [] => "no contexts are saved yet".to_owned(),
            names => format!("saved contexts: {}", names.join(", ")),
        })
    }
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or(Duration::ZERO)
        .as_secs()
}

fn check_name(name: &str) -> Result<(), Error> {
    let wrong = |why: String| Err(bad_request(why));
    if name.trim().is_empty() {
        return wrong("`name` is empty".into());
    }
    let bytes = name.len();
    if bytes > LONGEST_NAME {
        return wrong(format!(
            "`name` has {bytes} bytes; the limit is {LONGEST_NAME}"
        ));
    }
    if name.chars().any(char::is_control) {
        return wrong("`name` contains control characters".into());
    }
    Ok(())
}

fn damaged_error(name: &str) -> Error {
    Error::new(
        Code::Corrupt,
        format!("the saved context \"{name}\" is damaged"),
    )
    .hint("delete it and save it again")
}

/// The refusal to replace a saved context unasked. `place`: where it is.
pub fn name_taken_error(name: &str, place: &str) -> Error {
    let message = format!("{place} has another saved context \"{name}\"");
    Error::new(Code::Conflict, message)
        .hint("replace it with `replace`, or with --replace on the command line")
}

fn unread_error(name: &str, path: &Path, error: &io::Error) -> Error {
    if file::is_damage(error) {
        return damaged_error(name);
    }
    if error.kind() == io::ErrorKind::Unsupported {
        let message =
            format!("the saved context \"{name}\" was saved by a newer version of Tierbar");
        return Error::new(Code::ContextMismatch, message).hint("update Tierbar, or save it again");
    }
    storage_error("cannot read", path, error)
}

fn storage_error(what: &str, path: &Path, error: &io::Error) -> Error {
    Error::new(Code::Storage, format!("{what} {}: {error}", path.display())).hint(
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "free up space on its volume, then try again"
            }
            _ => "check its folder and its disk, then try again",
        },
    )
}

#[cfg(test)]
mod tests;

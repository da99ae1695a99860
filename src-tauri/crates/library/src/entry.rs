//! The models that are listed.

use crate::{Projector, Record, files::ModelFiles, headers::stamp_at, records};
use std::path::{Path, PathBuf};
use tierbar_core::{Error, FileIdentity, ModelAccount, ModelId, fit::Keeper};

/// One model: one file, or the parts of a split one.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The file name without its extension and part numbers, or the name that its app gives it. The second of two models
    /// with the same name is `NAME@PLACE`.
    pub id: ModelId,
    /// The first part.
    pub path: PathBuf,
    /// The existing parts, in order.
    pub parts: Vec<PathBuf>,
    /// Of all parts.
    pub size_bytes: u64,
    /// When the first part was changed last, in seconds since 1970, if that is known.
    pub modified: Option<u64>,
    pub keeper: Keeper,
    /// The media projector in the same folder, or the one that its app names.
    pub projector: Option<Projector>,
    /// Where the first part came from, if known.
    pub record: Option<Record>,
    /// The contents of its header, or why it cannot be used.
    pub account: Result<ModelAccount, Error>,
}

impl Entry {
    /// Returns what measurements know it by.
    pub fn identity(&self) -> FileIdentity<'_> {
        FileIdentity {
            model: &self.id,
            size_bytes: self.size_bytes,
            modified: self.modified,
            sha256: self.record.as_ref().and_then(Record::last_sha256),
        }
    }

    /// Without its projector.
    pub(super) fn new(model: &ModelFiles, account: Result<ModelAccount, Error>) -> Self {
        let account = match &model.incomplete {
            Some(error) => Err(error.clone()),
            None => {
                account.map_err(|error| incomplete(model.id.as_str(), model.size_bytes(), error))
            }
        };
        // Tierbar does not write to the folders of other apps, so they have no records.
        let recorded = matches!(model.keeper, Keeper::Tierbar | Keeper::Folder);
        Self {
            id: model.id.clone(),
            path: model.path.clone(),
            parts: model.parts.clone(),
            size_bytes: model.size_bytes(),
            modified: model
                .version
                .first()
                .and_then(|file| records::seconds(file.modified?)),
            keeper: model.keeper,
            projector: None,
            record: model
                .version
                .first()
                .filter(|_| recorded)
                .and_then(|file| records::current_record(&model.path, file)),
            account,
        }
    }

    /// Returns the reference that Tierbar downloaded it by, if it did.
    pub fn reference(&self) -> Option<&str> {
        self.record.as_ref()?.reference.as_deref()
    }
}

/// Returns when the file at the path was changed last, in seconds since 1970, if that is known.
pub fn modified_at(path: &Path) -> Option<u64> {
    records::seconds(stamp_at(path)?.modified?)
}

/// The models that a scan found, and its problems.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scan {
    /// By id.
    pub entries: Vec<Entry>,
    /// Problems in plain sentences, such as a folder whose volume is not connected.
    pub notices: Vec<String>,
    /// Why the models folder could not be read.
    pub models_dir_error: Option<Error>,
}

/// Explains a file that is shorter than its header says: it is most likely still being copied.
pub(crate) fn incomplete(name: &str, size_bytes: u64, error: Error) -> Error {
    let Some(expected) = error.details.get("expected_bytes").cloned() else {
        return error;
    };
    let Error { code, details, .. } = error;
    let mut incomplete = Error::new(
        code,
        format!("{name} is incomplete ({size_bytes} of {expected} bytes)"),
    )
    .hint("if it is still being copied, wait until it is complete; otherwise, download it again");
    incomplete.details = details;
    incomplete
}

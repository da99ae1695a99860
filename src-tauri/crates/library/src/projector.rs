//! Which media projector belongs to which model.

use crate::{
    folder::file_name,
    headers::{Headers, Version},
};
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};
use tierbar_core::{Code, Error, ModelAccount};
use tierbar_gguf::ProjectorAccount;

/// Projectors by their folder.
#[derive(Debug, Default)]
pub(crate) struct Projectors(HashMap<PathBuf, Vec<(PathBuf, ProjectorAccount)>>);

impl Projectors {
    /// Reads the headers and keeps only projectors.
    pub(crate) fn read(files: &[(PathBuf, Version)], headers: &Headers) -> Self {
        let mut projectors = Self::default();
        for (path, version) in files {
            if let Ok(account) = headers.projector(path, version) {
                projectors.add(path.clone(), account);
            }
        }
        projectors
    }

    pub(crate) fn add(&mut self, path: PathBuf, account: ProjectorAccount) {
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        self.0.entry(folder).or_default().push((path, account));
    }

    /// The one in the model's folder whose embeddings the model takes; of several, the one in the precision that
    /// GPUs compute in.
    pub(crate) fn of(&self, model: &Path, account: &ModelAccount) -> Option<PathBuf> {
        let beside = self.0.get(model.parent()?)?;
        let rank = |(path, projector): &&(PathBuf, ProjectorAccount)| {
            let quant = match projector.quant.as_str() {
                "F16" => 0,
                "BF16" => 1,
                _ => 2,
            };
            (quant, path.clone())
        };
        let fitting = beside
            .iter()
            .filter(|(_, projector)| projector.fits(account));
        Some(fitting.min_by_key(rank)?.0.clone())
    }
}

/// Returns whether the file is named like a projector.
pub(crate) fn is_named(path: &Path) -> bool {
    file_name(path).to_ascii_lowercase().contains("mmproj")
}

/// Returns whether the file may be a projector with another name, since it is not a loadable model.
pub(crate) fn may_be(account: &Result<ModelAccount, Error>) -> bool {
    matches!(account, Err(error) if error.code == Code::ModelUnsupported)
}

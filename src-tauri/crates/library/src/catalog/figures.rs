//! What the hub says of the catalog's files: current names, sizes, hashes and commits, asked for by the user or noted when a
//! file without a known hash was first downloaded. Merged over the built-in catalog, whose other facts stay.

use super::{Catalog, Entry, Quant};
use crate::{
    hub::HubFiles,
    other_apps::is_hex,
    reference::{Pick, is_gguf, path_problem},
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The supported version of the file format.
const VERSION: u32 = 1;

/// The hub's figures by the ids of the catalog. Those of an id that this catalog does not have are kept, and unused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HubFigures {
    version: u32,
    /// When the whole list was last updated, RFC 3339.
    pub refreshed: Option<String>,
    files: BTreeMap<String, Vec<KnownFile>>,
    /// The ids whose repositories had no media projector, and when that was seen, RFC 3339.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    without_projector_at: BTreeMap<String, String>,
}

/// A file as the hub had it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownFile {
    pub quant: String,
    pub file: String,
    pub size_bytes: u64,
    /// Lower-case hex.
    pub sha256: Option<String>,
    /// The commit.
    pub revision: String,
    /// When, RFC 3339.
    pub seen: String,
}

impl Default for HubFigures {
    fn default() -> Self {
        Self {
            version: VERSION,
            refreshed: None,
            files: BTreeMap::new(),
            without_projector_at: BTreeMap::new(),
        }
    }
}

impl HubFigures {
    /// Reads a stored file.
    ///
    /// # Errors
    /// Why it cannot be used: it is not of this format, or of another version. Single files that make no sense are left out.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let mut figures: Self =
            serde_json::from_slice(text).map_err(|error| format!("it is invalid: {error}"))?;
        if figures.version != VERSION {
            return Err(format!(
                "it has version {}, and this Tierbar reads version {VERSION}",
                figures.version
            ));
        }
        for files in figures.files.values_mut() {
            files.retain(KnownFile::is_valid);
        }
        Ok(figures)
    }

    /// Takes over what a repository holds of an entry's quants. A file that was renamed is found by its quant; one that is
    /// gone, or is split by now, keeps what was known of it.
    pub fn update(&mut self, entry: &Entry, hub: &HubFiles, now: &str) {
        if hub.projectors.is_empty() {
            self.without_projector_at
                .insert(entry.id.clone(), now.to_owned());
        } else {
            self.without_projector_at.remove(&entry.id);
        }
        for quant in &entry.quants {
            let by_name = || hub.picked(&Pick::Quant(quant.quant.clone())).ok().flatten();
            let found = hub.picked(&Pick::File(quant.file.clone())).ok().flatten();
            let Some(found) = found.or_else(by_name) else {
                continue;
            };
            let [file] = found.files.as_slice() else {
                continue;
            };
            let known = KnownFile {
                quant: quant.quant.clone(),
                file: file.path.clone(),
                size_bytes: file.size,
                sha256: file.sha256.clone(),
                revision: hub.commit.clone(),
                seen: now.to_owned(),
            };
            self.keep(&entry.id, known);
        }
    }

    /// Notes one file of an entry, in place of what was known of its quant.
    pub fn keep(&mut self, id: &str, known: KnownFile) {
        let files = self.files.entry(id.to_owned()).or_default();
        files.retain(|file| file.quant != known.quant);
        files.push(known);
    }

    fn known_file(&self, id: &str, quant: &str) -> Option<&KnownFile> {
        let mut files = self.files.get(id)?.iter();
        files.find(|file| file.quant == quant)
    }
}

impl KnownFile {
    /// The stored file may have been edited.
    fn is_valid(&self) -> bool {
        path_problem(&self.file).is_none()
            && is_gguf(&self.file)
            && self.size_bytes > 0
            && is_hex(&self.revision, 40)
            && self.sha256.as_deref().is_none_or(|sum| is_hex(sum, 64))
    }
}

impl Catalog {
    /// Returns the catalog with the hub's figures of its files. Figures older than the catalog count only for a file whose
    /// hash it does not know.
    pub fn with(&self, figures: &HubFigures) -> Self {
        let mut catalog = self.clone();
        for entry in &mut catalog.models {
            // RFC 3339 begins with the date.
            let absent = figures.without_projector_at.get(&entry.id);
            if absent.is_some_and(|seen| *seen >= self.date) {
                entry.projector = None;
            }
            for quant in &mut entry.quants {
                let Some(known) = figures.known_file(&entry.id, &quant.quant) else {
                    continue;
                };
                if quant.sha256.is_none() || known.seen >= self.date {
                    *quant = Quant {
                        quant: quant.quant.clone(),
                        file: known.file.clone(),
                        size_bytes: Some(known.size_bytes),
                        sha256: known.sha256.clone(),
                        revision: Some(known.revision.clone()),
                    };
                }
            }
        }
        catalog
    }
}

#[cfg(test)]
mod tests;

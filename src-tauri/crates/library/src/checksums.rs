//! Compares a model's files with their recorded checksums. A download is verified by `tierbar-fetch` while it arrives.

use crate::{other_apps, records};
use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
};
use tierbar_core::{Code, Error, fit::Keeper};
use tokio_util::sync::CancellationToken;

/// The hashes of a model's files, in the order of its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification {
    pub parts: Vec<PartHash>,
    /// Of its media projector, if that is in the models folder.
    pub projector: Option<PartHash>,
}

/// All hashes are sha256 in lower-case hex.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartHash {
    pub path: PathBuf,
    pub sha256: String,
    /// From the download, the previous check, or the name that another app gave the file.
    pub expected: Option<String>,
}

impl Verification {
    /// Returns the hash of the file, or the hashes of all parts separated by spaces.
    pub fn sha256(&self) -> String {
        let hashes: Vec<_> = self.parts.iter().map(|part| part.sha256.as_str()).collect();
        hashes.join(" ")
    }

    /// Returns the expected value of [`Verification::sha256`], if it is known for all parts.
    pub fn expected(&self) -> Option<String> {
        let hashes: Option<Vec<_>> = self
            .parts
            .iter()
            .map(|part| part.expected.as_deref())
            .collect();
        Some(hashes?.join(" "))
    }

    /// Returns `false` if a part or the projector differs, or `None` if none differs but the hash of a part is unknown.
    pub fn matches(&self) -> Option<bool> {
        if !self.damaged().is_empty() {
            return Some(false);
        }
        let known = |part: &PartHash| part.expected.is_some();
        self.parts.iter().all(known).then_some(true)
    }

    /// Returns the files that differ.
    pub fn damaged(&self) -> Vec<&Path> {
        let differs = |part: &&PartHash| {
            let expected = part.expected.as_ref();
            expected.is_some_and(|expected| *expected != part.sha256)
        };
        let all = self.parts.iter().chain(&self.projector).filter(differs);
        all.map(|part| part.path.as_path()).collect()
    }
}

pub(crate) fn verify(
    parts: &[PathBuf],
    projector: Option<&PathBuf>,
    keeper: Keeper,
    cancel: &CancellationToken,
) -> Result<Verification, Error> {
    let length = |path: &PathBuf| path.metadata().map_or(0, |file| file.len());
    let total: u64 = parts.iter().chain(projector).map(length).sum();
    let mut done = 0;
    let mut hashes = Vec::with_capacity(parts.len() + 1);
    for path in parts.iter().chain(projector) {
        let hash = File::open(path).and_then(|file| {
            tierbar_fetch::sha256_of(&file, |bytes| {
                done += bytes;
                !cancel.is_cancelled()
            })
        });
        let sha256 = hash
            .map_err(|error| unreadable(path, &error))?
            .ok_or_else(|| {
                Error::new(
                    Code::Cancelled,
                    format!("the check was stopped after {done} of {total} bytes"),
                )
            })?;
        let expected = match keeper {
            Keeper::Ollama | Keeper::HuggingFace => other_apps::hash_in_name(path),
            Keeper::Tierbar | Keeper::Folder | Keeper::LmStudio => records::expected_sha256(path),
        };
        if keeper == Keeper::Tierbar
            && let Err(error) = records::record_hash(path, &sha256)
        {
            // This result is correct; only the next check has less to compare with.
            tracing::warn!(%error, "cannot record a checksum");
        }
        hashes.push(PartHash {
            path: path.clone(),
            sha256,
            expected,
        });
    }
    let projector = projector.and_then(|_| hashes.pop());
    Ok(Verification {
        parts: hashes,
        projector,
    })
}

fn unreadable(path: &Path, error: &io::Error) -> Error {
    Error::new(
        Code::Storage,
        format!("{} cannot be read completely: {error}", path.display()),
    )
    .hint("check that its volume is connected; if it is, download the model again")
}

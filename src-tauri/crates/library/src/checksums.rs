//! Hashing a model's files, and comparing them with what they should be.

use crate::{keepers, platform, records, records::hex};
use sha2::{Digest, Sha256};
use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};
use tierbar_core::{Code, Error, fit::Keeper};
use tokio_util::sync::CancellationToken;

const CHUNK: usize = 4 << 20;

/// How a model's files were found. The first part comes first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification {
    pub parts: Vec<PartHash>,
}

/// All hashes are sha256 in lower-case hex.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartHash {
    pub path: PathBuf,
    pub sha256: String,
    /// From what was fetched, from the last time, or from the name that another app gave the file.
    pub expected: Option<String>,
}

impl Verification {
    /// The hash of the file; of a model of several parts, theirs in order, with a space between.
    #[must_use]
    pub fn sha256(&self) -> String {
        let hashes: Vec<_> = self.parts.iter().map(|part| part.sha256.as_str()).collect();
        hashes.join(" ")
    }

    /// What [`Verification::sha256`] should be, if that is known of all parts.
    #[must_use]
    pub fn expected(&self) -> Option<String> {
        let hashes: Option<Vec<_>> = self
            .parts
            .iter()
            .map(|part| part.expected.as_deref())
            .collect();
        Some(hashes?.join(" "))
    }

    /// `false` if one part differs; `None` if none does but of one nothing is known.
    #[must_use]
    pub fn matches(&self) -> Option<bool> {
        let of = |part: &PartHash| Some(*part.expected.as_ref()? == part.sha256);
        if self.parts.iter().any(|part| of(part) == Some(false)) {
            return Some(false);
        }
        self.parts
            .iter()
            .all(|part| of(part) == Some(true))
            .then_some(true)
    }
}

/// Bytes that were read, and how many there are to read.
pub type OnProgress<'a> = &'a mut dyn FnMut(u64, u64);

pub(crate) fn verify(
    parts: &[PathBuf],
    keeper: Keeper,
    progress: OnProgress<'_>,
    cancel: &CancellationToken,
) -> Result<Verification, Error> {
    let length = |path: &PathBuf| path.metadata().map_or(0, |file| file.len());
    let total = parts.iter().map(length).sum();
    let mut done = 0;
    let mut hashes = Vec::with_capacity(parts.len());
    for path in parts {
        let hash = hash(path, &mut |bytes| {
            done += bytes;
            progress(done, total);
            !cancel.is_cancelled()
        });
        let sha256 = hash
            .map_err(|error| unreadable(path, &error))?
            .ok_or_else(|| {
                Error::new(
                    Code::Cancelled,
                    format!("the check was stopped after {done} bytes of {total}"),
                )
            })?;
        let expected = match keeper {
            Keeper::Ollama | Keeper::HuggingFace => keepers::hash_in_name(path),
            Keeper::Tierbar | Keeper::Folder | Keeper::LmStudio => records::expected(path),
        };
        if keeper == Keeper::Tierbar
            && let Err(error) = records::hashed(path, &sha256)
        {
            // The answer is right all the same; only the next one has less to compare with.
            tracing::warn!(%error, "a check is not written down");
        }
        hashes.push(PartHash {
            path: path.clone(),
            sha256,
            expected,
        });
    }
    Ok(Verification { parts: hashes })
}

/// The sha256 of a file, read without filling the system's file cache: what is cached counts as used where the memory
/// for a model is weighed. `on_bytes` is told of each piece and may end it with `false`, for `None`.
pub(crate) fn hash(
    path: &Path,
    on_bytes: &mut dyn FnMut(u64) -> bool,
) -> io::Result<Option<String>> {
    let mut file = File::open(path)?;
    platform::uncached(&file);
    let mut hash = Sha256::new();
    let mut chunk = vec![0; CHUNK];
    let mut offset = 0;
    loop {
        let read = match file.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hash.update(&chunk[..read]);
        offset += read as u64;
        // From the start: what the system has read ahead is dropped with the next piece.
        platform::spare_cache(&file, 0, offset);
        if !on_bytes(read as u64) {
            return Ok(None);
        }
    }
    Ok(Some(hex(&hash.finalize())))
}

fn unreadable(path: &Path, error: &io::Error) -> Error {
    Error::new(
        Code::Storage,
        format!("{} cannot be read to its end: {error}", path.display()),
    )
    .hint("check that its volume is still connected; if it is, fetch the model again")
}

//! What a state is a state of: it may only be loaded where all of this is the same.

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};
use tierbar_core::config::KvCache;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// [`fingerprint`] of the model's file.
    pub model: String,
    /// SHA-256 of the chat template, in hex: with another one the same messages are other tokens.
    pub template: String,
    pub kv_cache: KvCache,
    /// The engine's version: the form of a state may change with it.
    pub engine: String,
}

/// Returns the first difference between a state and what is to load it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    Model,
    Template,
    KvCache,
    Engine,
}

impl Key {
    pub fn difference(&self, other: &Self) -> Option<Difference> {
        [
            (self.model != other.model, Difference::Model),
            (self.template != other.template, Difference::Template),
            (self.kv_cache != other.kv_cache, Difference::KvCache),
            (self.engine != other.engine, Difference::Engine),
        ]
        .into_iter()
        .find_map(|(differs, what)| differs.then_some(what))
    }
}

const SAMPLES: u64 = 64;
const SAMPLE_BYTES: u64 = 64 << 10;

/// Identifies a model without reading gigabytes: SHA-256, in hex, of each file's length and of 64 pieces of 64 KiB spread
/// over it, its first and last bytes among them. A finetune differs in all its tensors, and so in nearly all the pieces.
///
/// # Errors
/// What reading them gives.
pub fn fingerprint<'a>(files: impl IntoIterator<Item = &'a Path>) -> io::Result<String> {
    let mut digest = Sha256::new();
    let mut piece = Vec::new();
    for path in files {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        digest.update(length.to_le_bytes());
        let last = length.saturating_sub(SAMPLE_BYTES);
        let mut read = None;
        for sample in 0..SAMPLES {
            let at = u64::try_from(u128::from(last) * u128::from(sample) / u128::from(SAMPLES - 1))
                .unwrap_or(last);
            if read.replace(at) == Some(at) {
                continue;
            }
            file.seek(SeekFrom::Start(at))?;
            piece.clear();
            (&mut file).take(SAMPLE_BYTES).read_to_end(&mut piece)?;
            digest.update(&piece);
        }
    }
    Ok(HEXLOWER.encode(&digest.finalize()))
}

/// SHA-256, in hex.
pub fn hash(bytes: impl AsRef<[u8]>) -> String {
    HEXLOWER.encode(&Sha256::digest(bytes))
}

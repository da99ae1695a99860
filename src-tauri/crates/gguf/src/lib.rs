//! GGUF headers: read, checked against the file's size, and turned into what a model costs.
//!
//! Format: ggml's `docs/gguf.md`, versions 2 and 3, little-endian. The checks are those of llama.cpp's
//! `ggml/src/gguf.cpp`, so that a file accepted here is not refused or aborted on by the engine. A header is read
//! front to back from anything that reads, with the whole length known beforehand; nothing of it is trusted: no
//! length is believed beyond the bytes that are left, and only values that the account needs are kept.

mod account;
mod fault;
mod ggml;
mod header;
mod keys;
mod kv;
mod quant;
mod source;
mod split;

pub use split::{Split, split_of};

use std::{
    fs::File,
    io::{BufReader, Read},
    path::Path,
};
use tierbar_core::{Code, Error, ModelAccount};

/// Tokenizers make headers of some megabytes, mostly of short strings.
const BUFFER_BYTES: usize = 256 << 10;

/// Reads the header of a model file. Blocking; reads as far as the header goes, some megabytes at most.
///
/// # Errors
/// [`Code::ModelMissing`] if there is no such file or it may not be read; [`Code::ModelInvalid`] if it is not GGUF,
/// is truncated or contradicts itself; [`Code::ModelUnsupported`] for what this engine cannot load;
/// [`Code::Storage`] if reading fails.
pub fn read(path: &Path) -> Result<ModelAccount, Error> {
    let shown = path.display();
    let missing = |error: std::io::Error| {
        Error::new(
            Code::ModelMissing,
            format!("the model {shown} cannot be opened: {error}"),
        )
        .hint("check the path; if it is on another volume, connect that first")
    };
    // Before opening: opening a pipe would wait for its writer.
    let metadata = path.metadata().map_err(missing)?;
    if !metadata.is_file() {
        return Err(
            Error::new(Code::ModelMissing, format!("{shown} is not a file"))
                .hint("name a .gguf file"),
        );
    }
    let file = File::open(path).map_err(missing)?;
    read_from(
        BufReader::with_capacity(BUFFER_BYTES, file),
        metadata.len(),
        &shown.to_string(),
    )
}

/// Reads a header from its first byte on, where `total_bytes` is the length of the whole file. `name` is what
/// errors call it. Reads in small pieces: give it a buffered source.
///
/// # Errors
/// As [`read`], less the missing file.
pub fn read_from(source: impl Read, total_bytes: u64, name: &str) -> Result<ModelAccount, Error> {
    let mut source = source::Source::new(source, total_bytes);
    header::read(&mut source)
        .and_then(|header| account::of(&header, total_bytes))
        .map_err(|fault| fault.told_of(name))
}

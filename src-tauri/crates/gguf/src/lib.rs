//! GGUF headers: read, checked against the file's size, and turned into what a model costs.
//!
//! Format: ggml's `docs/gguf.md`, versions 2 and 3, little-endian. The checks are those of llama.cpp's
//! `ggml/src/gguf.cpp`, and those that it ends the whole process over further on (`limits`, `vocabulary`). A header is read
//! front to back, with the file's length known beforehand. Nothing of it is trusted: no length is believed beyond the bytes
//! that are left, no header is longer than 128 MiB, and only values that an account needs are kept.

mod account;
mod encoder;
mod fault;
mod ggml;
mod header;
mod keys;
mod kv;
mod limits;
mod parts;
mod projector;
mod quant;
mod source;
mod split;
mod template;
mod vocabulary;

pub use encoder::Encoder;
pub use header::Tensor;
pub use projector::ProjectorAccount;
pub use split::{Split, split_of};

use fault::Fault;
use header::Header;
use parts::PartHeader;
use source::HeaderReader;
use std::{io::BufRead, path::Path};
use tierbar_core::{Error, ModelAccount};

/// Reads the header of a model file, and of the parts beside it if it is the first part of a split model. Blocking;
/// reads as far as the headers go, some megabytes at most.
///
/// # Errors
/// `ModelMissing` if there is no such file, it may not be read or a part is missing; `ModelInvalid` if it is not GGUF, is
/// truncated or contradicts itself, or its parts do not belong together; `ModelUnsupported` for what this engine cannot
/// load, a part other than the first among it; `Storage` if reading fails.
pub fn read(path: &Path) -> Result<ModelAccount, Error> {
    let (header, bytes, count) = whole(path)?;
    account::account_model(&header, bytes, count).map_err(|fault| fault.into_error(path.display()))
}

/// Reads what is said of all tensors, in the order of the headers. Blocking, as [`read`].
///
/// # Errors
/// As [`read`].
pub fn tensors(path: &Path) -> Result<Vec<Tensor>, Error> {
    Ok(whole(path)?.0.tensors)
}

/// The header of a model, joined with those of its other parts, the bytes of all files, and their number.
fn whole(path: &Path) -> Result<(Header, u64, u16), Error> {
    let (mut header, first_bytes) = header::open_header(path)?;
    let part = first_part(&header).map_err(|fault| fault.into_error(path.display()))?;
    let (bytes, count) = match part {
        None => (first_bytes, 1),
        Some(part) => (
            parts::join_parts(path, &mut header, part, first_bytes)?,
            part.count,
        ),
    };
    Ok((header, bytes, count))
}

/// Reads a header from its first byte on, where `total_bytes` is the length of the whole file. `name` is what
/// errors call it.
///
/// Of the first part of a split model, `parts` is the count of all parts, but bytes, parameters and `tied_output`
/// are of this part alone.
///
/// # Errors
/// As [`read`], less the missing file. If the source fails with an [`io::Error`](std::io::Error) that has an
/// [`Error`] inside, then that error.
pub fn read_from(
    source: impl BufRead,
    total_bytes: u64,
    name: &str,
) -> Result<ModelAccount, Error> {
    header::read_header(&mut HeaderReader::new(source, total_bytes))
        .and_then(|header| {
            let parts = first_part(&header)?.map_or(1, |part| part.count);
            account::account_model(&header, total_bytes, parts)
        })
        .map_err(|fault| fault.into_error(name))
}

fn first_part(header: &Header) -> Result<Option<PartHeader>, Fault> {
    PartHeader::from_header(header)?
        .map(PartHeader::first)
        .transpose()
}

/// Reads the header of a media projector, such as `mmproj-BF16.gguf`.
///
/// # Errors
/// As [`read`]; `ModelUnsupported` if it is a model.
pub fn projector(path: &Path) -> Result<ProjectorAccount, Error> {
    let (header, _) = header::open_header(path)?;
    projector::account_projector(&header).map_err(|fault| fault.into_error(path.display()))
}

/// As [`read_from`], for a media projector.
///
/// # Errors
/// As [`projector`], less the missing file.
pub fn projector_from(
    source: impl BufRead,
    total_bytes: u64,
    name: &str,
) -> Result<ProjectorAccount, Error> {
    header::read_header(&mut HeaderReader::new(source, total_bytes))
        .and_then(|header| projector::account_projector(&header))
        .map_err(|fault| fault.into_error(name))
}

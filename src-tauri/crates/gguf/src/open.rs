//! Files: a model's header by its path.

use crate::{
    header::{self, Header},
    source::HeaderReader,
};
use std::{fs::File, io::BufReader, path::Path};
use tierbar_core::{Code, Error};

/// Tokenizers make headers of some megabytes, mostly of short strings.
const BUFFER_BYTES: usize = 256 << 10;

/// The header, and the file's length.
pub(crate) fn open_header(path: &Path) -> Result<(Header, u64), Error> {
    let shown = path.display();
    let missing = |error: std::io::Error| {
        Error::new(
            Code::ModelMissing,
            format!("the model {shown} cannot be opened: {error}"),
        )
        .hint("check the path, and that its volume is connected")
    };
    // Before opening: opening a pipe would wait for its writer.
    let metadata = path.metadata().map_err(missing)?;
    if !metadata.is_file() {
        return Err(
            Error::new(Code::ModelMissing, format!("{shown} is not a file"))
                .hint("choose a .gguf file"),
        );
    }
    let bytes = metadata.len();
    let file = BufReader::with_capacity(BUFFER_BYTES, File::open(path).map_err(missing)?);
    header::read_header(&mut HeaderReader::new(file, bytes))
        .map(|header| (header, bytes))
        .map_err(|fault| fault.into_error(&shown.to_string()))
}

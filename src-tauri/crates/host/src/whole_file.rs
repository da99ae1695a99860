//! Writing a file whole or not at all.

use std::{
    fs,
    io::{self, Write},
    path::Path,
};

/// Replaces a file's text, or creates the file. It is whole at every moment, even if the power fails. A link, such as into a
/// repository of settings, stays a link, and permissions stay as they are; a new file is its owner's alone. Blocking.
///
/// # Errors
/// Those of the system; the file is then as it was.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut file = tempfile::NamedTempFile::new_in(target.parent().unwrap_or(Path::new(".")))?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    if let Ok(before) = fs::metadata(&target) {
        file.as_file().set_permissions(before.permissions())?;
    }
    file.persist(&target)?;
    Ok(())
}

/// Writes a file whole or not at all, which only its owner can read. `lasts`: it is on the disk when this returns. Blocking.
///
/// # Errors
/// Those of the system; the file is then as it was.
pub(crate) fn write_private(path: &Path, bytes: &[u8], lasts: bool) -> io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
    file.write_all(bytes)?;
    if lasts {
        file.as_file().sync_all()?;
    }
    file.persist(path)?;
    Ok(())
}

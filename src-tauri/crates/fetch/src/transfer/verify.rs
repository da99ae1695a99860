//! Verifies a download: its size before the first byte is written, its sha256 (from `disk::hasher`) before the file gets its
//! name, and a file that already has that name.

use super::{
    FileSpec,
    destination::{name_taken, storage_error},
    disk,
};
use crate::web::display_url;
use std::{
    fs::{self, File},
    io,
    path::Path,
};
use tierbar_core::{Code, Error};

pub(super) fn check_size(spec: &FileSpec, total: u64) -> Result<(), Error> {
    match spec.size {
        Some(size) if size != total => {
            let file = display_url(&spec.url);
            let message = format!("{file} has {total} bytes on the server instead of {size}");
            Err(Error::new(Code::Corrupt, message)
                .hint("the repository may have changed; look the model up again"))
        }
        _ => Ok(()),
    }
}

/// Compares the sha256 of the bytes on the disk with the expected one, if there is one. If they differ, the caller discards the bytes.
pub(super) fn check_sha256(spec: &FileSpec, sha256: &str) -> Result<(), Error> {
    match &spec.sha256 {
        Some(expected) if !expected.eq_ignore_ascii_case(sha256) => Err(Error::new(
            Code::Corrupt,
            format!("the sha256 is {sha256} instead of {expected}; the download was discarded"),
        )
        .hint("try again; if it differs again, the server or a proxy changes the file")),
        _ => Ok(()),
    }
}

/// Returns the size of a file at `dest` with the expected sha256, or `None` if there is no file. Blocking.
///
/// # Errors
/// [`Code::Storage`] if another file has the name, or no sha256 is expected; [`Code::Cancelled`] once `is_wanted` returns
/// `false`.
pub(super) fn check_existing(
    dest: &Path,
    sha256: Option<&str>,
    is_wanted: impl Fn() -> bool,
) -> Result<Option<u64>, Error> {
    match fs::symlink_metadata(dest) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(storage_error("cannot read the metadata of", dest, &error)),
        Ok(_) => {}
    }
    let Some(sha256) = sha256 else {
        return Err(name_taken(dest));
    };
    let failed = |error: io::Error| storage_error("cannot read", dest, &error);
    // Checked before it is opened: opening a pipe would block.
    let metadata = fs::metadata(dest).map_err(failed)?;
    if !metadata.is_file() {
        return Err(name_taken(dest));
    }
    let file = File::open(dest).map_err(failed)?;
    match disk::sha256_of(&file, |_| is_wanted()).map_err(failed)? {
        Some(actual) if actual.eq_ignore_ascii_case(sha256) => Ok(Some(metadata.len())),
        Some(_) => Err(name_taken(dest)),
        None => Err(super::canceled_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(size: Option<u64>, sha256: Option<&str>) -> FileSpec {
        FileSpec {
            url: "https://example.com/m.gguf?signature=5ec7e7"
                .parse()
                .unwrap(),
            dest: "/models/m.gguf".into(),
            size,
            sha256: sha256.map(str::to_owned),
        }
    }

    #[test]
    fn another_size_or_sha256_is_corrupt() {
        assert!(check_size(&spec(Some(7), None), 7).is_ok());
        assert!(check_size(&spec(None, None), 7).is_ok());
        let error = check_size(&spec(Some(8), None), 7).unwrap_err();
        assert_eq!(error.code, Code::Corrupt);
        assert_eq!(
            error.message,
            "https://example.com/m.gguf has 7 bytes on the server instead of 8"
        );
        assert!(check_sha256(&spec(None, Some("AB")), "ab").is_ok());
        assert!(check_sha256(&spec(None, None), "ab").is_ok());
        let error = check_sha256(&spec(None, Some("ab")), "cd").unwrap_err();
        assert_eq!(error.code, Code::Corrupt);
    }

    #[test]
    fn a_file_that_has_the_name_is_verified_or_refused() {
        // The sha256 of "abc", from FIPS 180-2.
        const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let folder = tempfile::tempdir().unwrap();
        let dest = folder.path().join("m.gguf");
        assert_eq!(check_existing(&dest, Some(ABC), || true).unwrap(), None);
        fs::write(&dest, "abc").unwrap();
        assert_eq!(check_existing(&dest, Some(ABC), || true).unwrap(), Some(3));
        let code =
            |sha256, wanted: bool| check_existing(&dest, sha256, || wanted).unwrap_err().code;
        assert_eq!(code(None, true), Code::Storage);
        assert_eq!(code(Some(ABC), false), Code::Cancelled);
        fs::write(&dest, "abd").unwrap();
        assert_eq!(code(Some(ABC), true), Code::Storage);
    }
}

//! Files that a person has named on the command line.

use std::{
    fs::File,
    io::{self, ErrorKind},
    path::Path,
};
use tierbar_core::{Code, Error};
use tierbar_host::is_data_folder;
use tierbar_nofollow::Opened;

/// Opens a file to read it. Links are followed, as other commands do, but not to Tierbar's own data: a command of an agent could have put
/// one in place of the file.
pub(crate) fn open(path: &Path) -> Result<File, Error> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|error| unreadable(&name, &error))?;
    let opened = Opened::of(file, path);
    // A pipe has no path.
    let real = opened.real_path().unwrap_or_default();
    if real.ancestors().any(is_data_folder) {
        let message = format!("{name} belongs to Tierbar's own data");
        return Err(Error::new(Code::BadRequest, message).hint("choose another file"));
    }
    Ok(opened.into_file())
}

pub(crate) fn unreadable(name: &str, error: &io::Error) -> Error {
    let code = match error.kind() {
        ErrorKind::NotFound => Code::NotFound,
        ErrorKind::PermissionDenied => Code::AccessDenied,
        _ => Code::BadRequest,
    };
    Error::new(code, format!("{name} cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, io::Read, os::unix::fs::symlink};

    #[test]
    fn a_link_is_followed_but_not_to_tierbars_data() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::create_dir(at("data")).unwrap();
        for name in ["data/tierbar.db", "data/token", "notes.md"] {
            fs::write(at(name), name).unwrap();
        }
        symlink(at("notes.md"), at("link.md")).unwrap();
        symlink(at("data/token"), at("report.md")).unwrap();
        let mut text = String::new();
        open(&at("link.md"))
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, "notes.md");
        for name in ["report.md", "data/token"] {
            let error = open(&at(name)).unwrap_err();
            assert!(error.message.contains("own data"), "{name}: {error}");
        }
        assert_eq!(open(&at("none")).unwrap_err().code, Code::NotFound);
    }
}

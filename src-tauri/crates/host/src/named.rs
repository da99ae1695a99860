//! Files that a person has named: typed on the command line, or dropped onto the window.

use crate::own_data::OwnData;
use std::{
    fs::File,
    io::{self, ErrorKind},
    path::Path,
};
use tierbar_core::{Code, Error, own_lack};
use tierbar_nofollow::{OpenFile, locate, reason};

/// Opens a file to read it. Links are followed, as other programs do, but not to Tierbar's own data: a command of an agent could have put
/// one in place of the file. Blocking.
///
/// # Errors
/// `BadRequest` for Tierbar's own data; `NotFound`, `AccessDenied` or `BadRequest` for what cannot be read; those of [`own_lack`].
pub fn open(path: &Path) -> Result<File, Error> {
    let unread = |error| unreadable(&path.display().to_string(), &error);
    let file = File::open(path).map_err(unread)?;
    let opened = OpenFile::from_file(file, path);
    // A pipe has none, or a name such as `pipe:[7]`.
    let real = opened.real_path().unwrap_or_default();
    let folder = real.parent().and_then(|folder| locate(folder).ok());
    let own = OwnData::now();
    for found in folder.iter().chain([&opened]) {
        own.refuse(path, found)?;
    }
    Ok(opened.into_file())
}

pub fn unreadable(name: &str, error: &io::Error) -> Error {
    if let Some(lack) = own_lack(error) {
        return lack;
    }
    let code = match error.kind() {
        ErrorKind::NotFound => Code::NotFound,
        ErrorKind::PermissionDenied => Code::AccessDenied,
        _ => Code::BadRequest,
    };
    Error::new(code, format!("{name} cannot be read: {}", reason(error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{own_data::tests::data_folder_at, sources::tests::tempdir};
    use std::{fs, io::Read, os::unix::fs::symlink};
    use tierbar_skip::{
        Call, denying,
        race::{Found, Way, race},
    };

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

    /// Tierbar's data itself stays where it is: a command of an agent cannot move that.
    #[test]
    fn a_name_that_leads_to_tierbars_data_at_times_is_refused() {
        let root = tempdir();
        let (notes, private) = (root.path().join("notes"), root.path().join("private"));
        fs::create_dir(&notes).unwrap();
        data_folder_at(&private);
        for (folder, text) in [(&notes, "own"), (&private, "secret")] {
            fs::write(folder.join("a.md"), text).unwrap();
        }
        let mut read = || {
            let text = open(&notes.join("a.md")).map(|file| io::read_to_string(file).unwrap());
            match text.as_deref() {
                Ok("own") => Found::Own,
                Ok(_) => Found::Foreign,
                Err(_) => Found::Refused,
            }
        };
        let ways = [Way::Link, Way::Exchange, Way::Mount];
        race(&ways, &notes, &private, &mut [&mut read]);
    }

    /// As macOS does for a file that its privacy settings deny.
    #[test]
    fn a_file_that_the_system_denies_has_a_reason() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("chats.json");
        fs::write(&path, "[]").unwrap();
        let Some(opened) = denying(Call::Open, || open(&path)) else {
            return tierbar_skip::skip("no call can be denied to a thread here");
        };
        let error = opened.unwrap_err();
        assert_eq!(error.code, Code::AccessDenied, "{error}");
        assert!(
            error.message.ends_with("cannot be read: permission denied"),
            "{error}"
        );
    }
}

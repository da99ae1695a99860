//! What documents and schedules read: files and folders that the owner agreed to by their real paths, opened anew at each use.

use crate::own_data::OwnData;
use std::{
    io,
    path::{Path, PathBuf},
};
use tierbar_core::{Code, Error, home::from_home, own_lack};
use tierbar_nofollow::{About, OpenError, OpenFile, locate, reason};

/// Returns the path that the owner has written; `~` is the home folder.
pub(crate) fn expanded(path: &str) -> PathBuf {
    from_home(path, tierbar_nofollow::home())
}

/// Opens a source, or a file of one. Blocking.
///
/// # Errors
/// `NotFound`, `AccessDenied` or `Storage` for what cannot be read; `BadRequest` for what lies behind a symbolic link, and for the data
/// of a Tierbar; `Storage` for what is in a folder that is in iCloud only, which opening it would download.
pub(crate) fn open(path: &Path) -> Result<OpenFile, Error> {
    open_with_data(path).map(|(opened, _)| opened)
}

/// As [`open`], with Tierbar's own data as it was once this was open.
pub(crate) fn open_with_data(path: &Path) -> Result<(OpenFile, OwnData), Error> {
    open_by(path, About::at)
}

/// `about_at`: what is at a path, before anything is opened.
fn open_by(
    path: &Path,
    about_at: impl Fn(&Path) -> io::Result<About>,
) -> Result<(OpenFile, OwnData), Error> {
    let places: Vec<_> = path.ancestors().collect();
    // From the root: a look into such a folder downloads it, too.
    for place in places.into_iter().rev() {
        let about = about_at(place).unwrap_or_default();
        if about.is_folder {
            check_is_here(place, about)?;
        }
    }
    let (opened, folder) = open_in_folder(path).map_err(|error| match error {
        OpenError::System { error, .. } => unreadable(path, &error),
        error => Error::new(Code::BadRequest, error.to_string())
            .hint("if you want what is there now, name it by its real path"),
    })?;
    let own = OwnData::now();
    for found in folder.iter().chain([&opened]) {
        own.refuse(path, found)?;
    }
    Ok((opened, own))
}

/// Opens it by its open folder, so that both can be examined, whatever their paths are by then.
fn open_in_folder(path: &Path) -> Result<(OpenFile, Option<OpenFile>), OpenError> {
    let (Some(around), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok((tierbar_nofollow::open(path)?, None));
    };
    match locate(around) {
        // Some folders may only be passed through. A data folder is its owner's to read.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Ok((tierbar_nofollow::open(path)?, None))
        }
        located => {
            let folder = located?;
            Ok((folder.inside(Path::new(name))?, Some(folder)))
        }
    }
}

/// Opens a source and, of a folder, looks at one name, since the system may let a folder be opened and keep its names. Blocking.
///
/// # Errors
/// Those of [`open`], and `Storage` for a file that is in iCloud only.
pub(crate) fn look(path: &Path) -> Result<About, Error> {
    let opened = open(path)?;
    let unreadable = |error| unreadable(path, &error);
    let about = opened.about().map_err(unreadable)?;
    if about.is_folder {
        for entry in opened.entries().map_err(unreadable)? {
            if entry.map_err(unreadable)?.fault.is_none() {
                break;
            }
        }
    }
    check_is_here(path, about)?;
    Ok(about)
}

fn check_is_here(path: &Path, about: About) -> Result<(), Error> {
    if !about.in_cloud {
        return Ok(());
    }
    let message = format!("{} is in iCloud only", path.display());
    Err(Error::new(Code::Storage, message).hint("download it in the Finder"))
}

pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Error {
    if let Some(lack) = own_lack(error) {
        return lack;
    }
    let code = match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Code::NotFound,
        io::ErrorKind::PermissionDenied => Code::AccessDenied,
        _ => Code::Storage,
    };
    let message = format!("{} cannot be read: {}", path.display(), reason(error));
    Error::new(code, message).hint("check that it exists and that Tierbar may read it")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::{fs, os::unix::fs::symlink};
    use tempfile::TempDir;

    /// A temporary folder by its real path. On macOS, that of the system lies behind a link.
    pub(crate) fn tempdir() -> TempDir {
        tempfile::tempdir_in(std::env::temp_dir().canonicalize().unwrap()).unwrap()
    }

    #[test]
    fn a_link_to_tierbars_data_is_refused_and_so_is_the_data() {
        let root = tempdir();
        let path = root.path();
        fs::create_dir_all(path.join("data/logs")).unwrap();
        for name in ["tierbar.db", "token", "logs/a.md"] {
            fs::write(path.join("data").join(name), "x").unwrap();
        }
        fs::write(path.join("report.md"), "x").unwrap();
        open(&path.join("report.md")).unwrap();
        for name in ["data", "data/token", "data/logs/a.md"] {
            let error = open(&path.join(name)).unwrap_err();
            assert!(error.message.contains("own data"), "{name}: {error}");
        }
        fs::remove_file(path.join("report.md")).unwrap();
        symlink(path.join("data/token"), path.join("report.md")).unwrap();
        let error = open(&path.join("report.md")).unwrap_err();
        assert_eq!(error.code, Code::BadRequest);
        assert!(error.message.contains("is a symbolic link"), "{error}");
        assert_eq!(open(&path.join("none")).unwrap_err().code, Code::NotFound);
    }

    #[test]
    fn what_is_in_icloud_only_is_refused() {
        let root = tempdir();
        let away = root.path().join("away");
        let papers = away.join("papers");
        fs::create_dir_all(&papers).unwrap();
        let file = papers.join("a.md");
        fs::write(&file, "x").unwrap();
        let open_without = |path: &Path, gone: &Path| {
            open_by(path, |place| {
                let is_inside = place != gone && place.starts_with(gone);
                assert!(!is_inside, "a look at {} downloads it", place.display());
                let in_cloud = place == gone;
                Ok(About {
                    in_cloud,
                    ..About::at(place)?
                })
            })
        };
        for path in [&away, &papers, &file] {
            let error = open_without(path, &away).unwrap_err();
            let expected = format!("{} is in iCloud only", away.display());
            assert_eq!((error.code, error.message), (Code::Storage, expected));
        }
        // What a file is can be seen once it is open; its content is not read.
        let (opened, _) = open_without(&file, &file).unwrap();
        let about = opened.about().unwrap();
        assert!(about.is_file);
        let evicted = About {
            in_cloud: true,
            ..about
        };
        check_is_here(&file, about).unwrap();
        check_is_here(&file, evicted).unwrap_err();
    }
}

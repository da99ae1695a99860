//! Walking a folder: bounded, through links, never in a circle.

use crate::{
    headers::{Stamp, stamp},
    platform,
};
use std::{
    collections::{HashSet, VecDeque},
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
};
use tierbar_nofollow::{is_dataless, reason};

/// A link to a folder, to a file that is wanted, or to nothing now; and what was there. The system does not tell of
/// changes where it leads.
pub(crate) type Link = (PathBuf, Option<Stamp>);

#[derive(Debug, Default)]
pub(crate) struct FolderContents {
    /// A folder's files before those of the folders in it; within a folder by name. May hold what is no regular file.
    pub(crate) files: Vec<PathBuf>,
    /// The folder itself first.
    pub(crate) folders: Vec<PathBuf>,
    pub(crate) links: Vec<Link>,
    /// There was more than `limit`.
    pub(crate) cut: bool,
    /// What could not be read below it, and why.
    pub(crate) unreadable: Vec<(PathBuf, String)>,
}

impl FolderContents {
    /// Adds what another folder of the same place has.
    pub(crate) fn add(&mut self, other: Self) {
        self.files.extend(other.files);
        self.folders.extend(other.folders);
        self.links.extend(other.links);
        self.cut |= other.cut;
        self.unreadable.extend(other.unreadable);
    }

    /// Returns what was read at a path, or notes why it was not. One that is not there has nothing.
    pub(crate) fn take<T>(&mut self, path: &Path, read: io::Result<T>) -> Option<T> {
        let read = read.map_err(|error| refusal(path, &error));
        read.map_err(|refusal| self.unreadable.extend(refusal)).ok()
    }
}

/// Returns a folder and why it cannot be read; `None` if it is not there.
pub(crate) fn refusal(folder: &Path, error: &io::Error) -> Option<(PathBuf, String)> {
    let is_there = error.kind() != io::ErrorKind::NotFound;
    is_there.then(|| (folder.to_owned(), reason(error)))
}

/// Whether the content is in iCloud only: reading a file would download it, and so would a look into a folder.
pub(crate) fn is_in_cloud(metadata: &fs::Metadata) -> bool {
    // Only the system takes content away: tests set a bit that means nothing here.
    is_dataless(platform::flags(metadata)) || cfg!(test) && metadata.mode() & 0o4000 != 0
}

/// Returns what is known of a folder, before a look into it.
///
/// # Errors
/// Those of the system, and if it is in iCloud only.
pub(crate) fn look_at(folder: &Path) -> io::Result<fs::Metadata> {
    let metadata = fs::metadata(folder)?;
    match is_in_cloud(&metadata) {
        true => Err(io::Error::other("it is in iCloud only")),
        false => Ok(metadata),
    }
}

/// Reads the folder and those up to `depth` below it, at most `limit` entries in all, without hidden ones.
///
/// # Errors
/// If the folder itself cannot be read.
pub(crate) fn walk(
    root: &Path,
    depth: usize,
    limit: usize,
    wanted: impl Fn(&OsStr) -> bool,
) -> io::Result<FolderContents> {
    let mut walked = FolderContents::default();
    let mut left = limit;
    let mut seen = HashSet::new();
    let mut waiting = VecDeque::from([(root.to_owned(), 0)]);
    while let Some((folder, level)) = waiting.pop_front() {
        // A link may lead to a folder that was read already, or to one above it.
        let read = look_at(&folder).and_then(|this| {
            if seen.insert((this.dev(), this.ino())) {
                read_names(&folder, &mut left, &mut walked).map(Some)
            } else {
                Ok(None)
            }
        });
        let names = match read {
            Ok(Some(names)) => names,
            Ok(None) => continue,
            Err(error) if level == 0 => return Err(error),
            // It is gone.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => {
                walked.unreadable.push((folder, reason(&error)));
                continue;
            }
        };
        for (name, kind) in names {
            let path = folder.join(&name);
            let mut is_folder = kind.is_dir();
            if kind.is_symlink() {
                let target = fs::metadata(&path).ok();
                if target.as_ref().is_none_or(fs::Metadata::is_dir) || wanted(&name) {
                    let there = target.as_ref().map(stamp);
                    walked.links.push((path.clone(), there));
                }
                let Some(target) = target else { continue };
                is_folder = target.is_dir();
            }
            if is_folder {
                if level < depth {
                    waiting.push_back((path, level + 1));
                }
            } else if wanted(&name) {
                walked.files.push(path);
            }
        }
        walked.folders.push(folder);
    }
    Ok(walked)
}

type NamedEntry = (OsString, fs::FileType);

/// Returns all but hidden entries, sorted. Notes whether some were left out, and which cannot be looked at.
fn read_names(
    folder: &Path,
    left: &mut usize,
    walked: &mut FolderContents,
) -> io::Result<Vec<NamedEntry>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if *left == 0 {
            walked.cut = true;
            break;
        }
        *left -= 1;
        let name = entry.file_name();
        if is_hidden(&name) {
            continue;
        }
        let kind = walked.take(&entry.path(), entry.file_type());
        names.extend(kind.map(|kind| (name, kind)));
    }
    names.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(names)
}

pub(crate) fn is_hidden(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b".")
}

/// Returns the last component, with invalid UTF-8 replaced.
pub(crate) fn file_name(path: &Path) -> String {
    path.file_name()
        .map(OsStr::to_string_lossy)
        .unwrap_or_default()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn folder(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        folder
    }

    fn files(folder: &Path, depth: usize) -> Vec<String> {
        let walked = walk(folder, depth, 1000, |_| true).unwrap();
        let relative = |path: &PathBuf| {
            let path = path.strip_prefix(folder).unwrap();
            path.to_str().unwrap().to_owned()
        };
        walked.files.iter().map(relative).collect()
    }

    #[test]
    fn files_come_before_subfolders_down_to_the_depth() {
        let folder = folder(&["z", "a/b/c/deep", "a/b/y", "a/x", ".hidden", ".cache/w"]);
        assert_eq!(files(folder.path(), 0), ["z"]);
        assert_eq!(files(folder.path(), 1), ["z", "a/x"]);
        assert_eq!(files(folder.path(), 3), ["z", "a/x", "a/b/y", "a/b/c/deep"]);
    }

    #[test]
    fn links_are_followed_without_cycles() {
        let folder = folder(&["a/file"]);
        symlink("..", folder.path().join("a/up")).unwrap();
        symlink("a", folder.path().join("b")).unwrap();
        symlink("c", folder.path().join("c")).unwrap();
        symlink("nowhere", folder.path().join("broken")).unwrap();
        assert_eq!(files(folder.path(), 40), ["a/file"]);
    }

    #[test]
    fn files_beyond_the_limit_are_reported() {
        let folder = folder(&["1", "2", "3", "a/4", "a/5"]);
        let walk = |limit| {
            let walked = walk(folder.path(), 1, limit, |_| true).unwrap();
            (walked.files.len(), walked.cut)
        };
        assert_eq!(walk(6), (5, false));
        assert_eq!(walk(5), (4, true));
        assert!(walk(2).0 <= 2);
    }

    #[test]
    fn only_an_unreadable_root_is_an_error() {
        let folder = folder(&["file"]);
        assert!(walk(&folder.path().join("gone"), 1, 9, |_| true).is_err());
        assert!(walk(&folder.path().join("file"), 1, 9, |_| true).is_err());
    }
}

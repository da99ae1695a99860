//! Tierbar's own data, which is no document and no place for a result. It is known by what it is: by a hard link or a bind mount it has
//! other paths, too.

use crate::folder::data_folder;
use parking_lot::Mutex;
use std::{
    collections::{BTreeSet, HashSet},
    ffi::OsStr,
    iter,
    path::{Path, PathBuf},
};
use tierbar_core::{Code, Error};
use tierbar_nofollow::{About, Entry, Identity, OpenFile};

/// The data folders that this process has opened.
static OPENED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// What is in the data folders of this process.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct OwnData(HashSet<Identity>);

impl OwnData {
    /// Counts a folder among them from now on.
    pub(crate) fn add(home: &Path) {
        OPENED.lock().insert(home.to_owned());
    }

    /// Looks at what is there now. Files are replaced, so this is true for a moment. Blocking.
    pub(crate) fn now() -> Self {
        let mut own = Self::default();
        let opened = OPENED.lock().clone();
        // A folder itself may be named by a link. The usual one is mostly among those that were opened.
        let homes: BTreeSet<PathBuf> = iter::once(data_folder())
            .chain(opened)
            .map(|home| home.canonicalize().unwrap_or(home))
            .collect();
        for home in homes {
            if let Ok(folder) = tierbar_nofollow::open(&home) {
                own.0.extend(folder.about().map(|about| about.identity));
                own.look_into(&folder);
            }
        }
        own
    }

    /// What cannot be looked at stays unknown.
    fn look_into(&mut self, folder: &OpenFile) {
        let Ok(entries) = folder.entries() else {
            return;
        };
        for entry in entries {
            let Ok(Entry { name, about, fault }) = entry else {
                return;
            };
            if fault.is_none() {
                self.0.insert(about.identity);
            }
            if about.is_folder
                && let Ok(inner) = folder.inside(Path::new(&name))
            {
                self.look_into(&inner);
            }
        }
    }

    pub(crate) fn has(&self, about: About) -> bool {
        self.0.contains(&about.identity)
    }

    /// Refuses what is open if it is one of these, or a folder in a data folder.
    ///
    /// # Errors
    /// `BadRequest`, which names it by `path`.
    pub(crate) fn refuse(&self, path: &Path, opened: &OpenFile) -> Result<(), Error> {
        let is_own = opened.about().is_ok_and(|about| self.has(about));
        let mut around = iter::successors(opened.parent(), OpenFile::parent);
        if is_own || is_data_folder(opened) || around.any(|folder| is_data_folder(&folder)) {
            let message = format!("{} belongs to Tierbar's own data", path.display());
            return Err(Error::new(Code::BadRequest, message).hint("choose another file or folder"));
        }
        Ok(())
    }
}

/// Whether an open folder is a data folder, of this Tierbar or another: it has a database and a token.
pub(crate) fn is_data_folder(folder: &OpenFile) -> bool {
    ["tierbar.db", "token"].iter().all(|name| {
        let found = folder.about_entry(OsStr::new(name));
        found.is_ok_and(|about| about.is_file)
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{named, sources, sources::tests::tempdir};
    use std::fs;
    use tempfile::TempDir;

    /// Makes a data folder, which counts as one of this process.
    pub(crate) fn data_folder_at(path: &Path) {
        fs::create_dir_all(path.join("logs")).unwrap();
        for name in ["tierbar.db", "token", "logs/a.md"] {
            fs::write(path.join(name), "secret").unwrap();
        }
        OwnData::add(path);
    }

    /// Gives the token of a data folder a second path, and returns that folder.
    pub(crate) fn hard_link_to_data(path: &Path) -> TempDir {
        let data = tempdir();
        data_folder_at(data.path());
        fs::hard_link(data.path().join("token"), path).unwrap();
        data
    }

    #[test]
    fn data_is_known_by_each_of_its_names() {
        let folder = tempdir();
        let (link, other) = (folder.path().join("a.md"), folder.path().join("b.md"));
        let data = hard_link_to_data(&link);
        fs::write(&other, "x").unwrap();
        sources::open(&other).unwrap();
        named::open(&other).unwrap();
        let (logs, inner) = (data.path().join("logs"), folder.path().join("c.md"));
        fs::hard_link(logs.join("a.md"), &inner).unwrap();
        for path in [&link, &inner, &logs] {
            for refused in [sources::open(path).map(drop), named::open(path).map(drop)] {
                let error = refused.unwrap_err();
                assert!(error.message.contains("own data"), "{error}");
            }
        }
        // Replaced, as a token is, the other is no longer of the data.
        fs::remove_file(data.path().join("token")).unwrap();
        fs::write(data.path().join("token"), "new").unwrap();
        sources::open(&link).unwrap();
    }
}

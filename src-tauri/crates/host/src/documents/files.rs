//! The files of folders: found, and watched.

use super::Bell;
use crate::folder::is_data_folder;
use notify::{RecommendedWatcher, RecursiveMode, Watcher, recommended_watcher};
use std::{
    collections::HashSet,
    fs::{self, Metadata},
    path::{Path, PathBuf},
    sync::Arc,
    time::UNIX_EPOCH,
};
use tierbar_core::documents::DocumentSource;
use tierbar_documents::is_readable;
use tierbar_store::SeenFile;

/// Folders within folders.
const DEEPEST: usize = 32;
const MOST_FILES: usize = 50_000;
/// Folders of programs, which have thousands of texts that nobody wrote.
const LEFT_OUT: [&str; 5] = [
    "node_modules",
    "target",
    "venv",
    "__pycache__",
    "site-packages",
];

/// Returns the files of a source; `None` if it is not there, such as on a disconnected disk.
pub(super) fn scan(source: &DocumentSource) -> Option<Vec<SeenFile>> {
    let path = Path::new(&source.path);
    if !source.is_folder {
        return Some(vec![seen(path, &path.metadata().ok()?)?]);
    }
    let mut files = Vec::new();
    let mut folders = vec![(path.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        // Its keys are no documents, and its logs change whenever one is read.
        if is_data_folder(&folder) {
            continue;
        }
        let Ok(entries) = fs::read_dir(&folder) else {
            // The folder itself is gone, or one in it cannot be read.
            if depth == 0 {
                return None;
            }
            continue;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            // A link may lead anywhere, also back.
            let Ok(found) = entry.metadata() else {
                continue;
            };
            if name.starts_with(['.', '~']) || LEFT_OUT.contains(&&*name) {
                continue;
            }
            let path = entry.path();
            if found.is_dir() && depth < DEEPEST {
                folders.push((path, depth + 1));
            } else if found.is_file() && is_readable(&path) && files.len() < MOST_FILES {
                files.extend(seen(&path, &found));
            }
        }
    }
    files.sort_unstable_by(|one, other| one.path.cmp(&other.path));
    Some(files)
}

/// `None` for a name that is not UTF-8.
fn seen(path: &Path, found: &Metadata) -> Option<SeenFile> {
    let modified = found
        .modified()
        .ok()
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let nanoseconds = modified.map(|time| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX));
    Some(SeenFile {
        path: path.to_str()?.to_owned(),
        size: found.len(),
        modified: nanoseconds.unwrap_or_default(),
    })
}

/// Watches sources for changes.
#[derive(Debug)]
pub(super) struct Watch {
    bell: Arc<Bell>,
    watcher: Option<RecommendedWatcher>,
    watched: HashSet<PathBuf>,
}

impl Watch {
    pub(super) fn new(bell: Arc<Bell>) -> Self {
        Self {
            bell,
            watcher: None,
            watched: HashSet::new(),
        }
    }

    /// Watches these and no others. Returns whether all of them are watched; otherwise changes are found by looking now and then.
    pub(super) fn follow(&mut self, sources: &[DocumentSource]) -> bool {
        if self.watcher.is_none() {
            let bell = Arc::clone(&self.bell);
            let made = recommended_watcher(move |event: notify::Result<notify::Event>| {
                // An error means that events may have been lost.
                if event.map_or(true, |event| !event.kind.is_access()) {
                    bell.ring();
                }
            });
            self.watcher = made.ok();
        }
        let Some(watcher) = &mut self.watcher else {
            return false;
        };
        let wanted: HashSet<PathBuf> = sources
            .iter()
            .map(|source| source.path.clone().into())
            .collect();
        self.watched.retain(|path| {
            let keep = wanted.contains(path);
            if !keep {
                // The system has forgotten one that is gone already.
                let _ = watcher.unwatch(path);
            }
            keep
        });
        for path in wanted {
            if !self.watched.contains(&path)
                && watcher.watch(&path, RecursiveMode::Recursive).is_ok()
            {
                self.watched.insert(path);
            }
        }
        self.watched.len() == sources.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &Path, is_folder: bool) -> DocumentSource {
        DocumentSource {
            id: 1,
            path: path.to_str().unwrap().to_owned(),
            collection: "Documents".to_owned(),
            is_folder,
            is_missing: false,
            indexed: 0,
            waiting: 0,
            failed: 0,
            noticed: 0,
            read_pictures: false,
            passages: 0,
            without_vectors: 0,
        }
    }

    #[test]
    fn a_folder_has_its_documents_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for inner in ["b", "node_modules", ".git", "Tierbar"] {
            fs::create_dir(at(inner)).unwrap();
        }
        for name in [
            "a.pdf",
            "b/c.md",
            "node_modules/d.md",
            ".git/e.txt",
            ".f.txt",
            "g.jpg",
            "h.rs",
            "Tierbar/tierbar.db",
            "Tierbar/token",
            "Tierbar/secrets.json",
        ] {
            fs::write(at(name), "x").unwrap();
        }
        std::os::unix::fs::symlink(folder.path(), at("b/again")).unwrap();
        let files = scan(&source(folder.path(), true)).unwrap();
        let names: Vec<_> = files
            .iter()
            .map(|file| {
                Path::new(&file.path)
                    .strip_prefix(folder.path())
                    .unwrap()
                    .to_str()
                    .unwrap()
            })
            .collect();
        assert_eq!(names, ["a.pdf", "b/c.md", "h.rs"]);
        assert!(files[0].size == 1 && files[0].modified > 0);
        // A file that was added itself is a document whatever its name.
        assert_eq!(scan(&source(&at("g.jpg"), false)).unwrap().len(), 1);
        assert_eq!(scan(&source(&at("none"), true)), None);
        assert_eq!(scan(&source(&at("none"), false)), None);
    }
}

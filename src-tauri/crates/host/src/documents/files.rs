//! The files of folders: found, and watched.

use super::Bell;
use crate::{folder::is_data_folder, sources};
use notify::{Config, RecommendedWatcher, RecursiveMode, Watcher};
use parking_lot::Mutex;
use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::Arc,
};
use tierbar_core::documents::DocumentSource;
use tierbar_documents::is_readable;
use tierbar_nofollow::About;
use tierbar_store::SeenFile;

/// Folders within folders.
const DEEPEST: usize = 32;
const MOST_FILES: usize = 50_000;
/// Folders of programs, which have thousands of generated texts.
const LEFT_OUT: [&str; 5] = [
    "node_modules",
    "target",
    "venv",
    "__pycache__",
    "site-packages",
];

/// More folders of a source that cannot be read are as none of them.
const MOST_UNREADABLE: usize = 100;

/// The files of a source.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Scan {
    pub(super) files: Vec<SeenFile>,
    /// Folders in it that cannot be read. What they have may be as it was.
    pub(super) unreadable: Vec<String>,
    /// It has more files.
    is_cut: bool,
}

impl Scan {
    /// Says what of the source with this path is not seen, if anything.
    pub(super) fn left_out(&self, path: &str) -> Option<String> {
        match self.unreadable.as_slice() {
            [] if self.is_cut => Some(format!(
                "{path} has more than {MOST_FILES} files, and the others are not searched"
            )),
            [] => None,
            [folder] => Some(format!(
                "{folder} cannot be read; its files are searched as they were"
            )),
            [folder, others @ ..] => Some(format!(
                "{folder} and {} other folders cannot be read; their files are searched as they were",
                others.len()
            )),
        }
    }
}

/// Returns the files of a source; `None` if it is not there, such as on a disconnected disk, or if a link has its path.
pub(super) fn scan(source: &DocumentSource) -> Option<Scan> {
    let path = Path::new(&source.path);
    let root = sources::open(path).ok()?;
    let mut scan = Scan::default();
    if !source.is_folder {
        scan.files.push(to_seen_file(path, root.about().ok()?)?);
        return Some(scan);
    }
    let mut folders = vec![(PathBuf::new(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        // Its keys are no documents, and its logs change whenever one is read.
        if is_data_folder(&path.join(&folder)) {
            continue;
        }
        let opened = root.inside(&folder).ok();
        let Some(entries) = opened.as_ref().and_then(|opened| opened.entries().ok()) else {
            // The folder itself is gone, or one in it cannot be read.
            if depth == 0 || scan.unreadable.len() >= MOST_UNREADABLE {
                return None;
            }
            let unreadable = path.join(&folder);
            scan.unreadable
                .extend(unreadable.to_str().map(str::to_owned));
            continue;
        };
        for entry in entries.flatten() {
            if is_left_out(&entry.name.to_string_lossy()) {
                continue;
            }
            let (inner, about) = (folder.join(&entry.name), entry.about);
            if about.is_folder && depth < DEEPEST {
                folders.push((inner, depth + 1));
            } else if about.is_file && about.bytes > 0 && is_readable(&inner) {
                scan.is_cut |= scan.files.len() >= MOST_FILES;
                if !scan.is_cut {
                    scan.files.extend(to_seen_file(&path.join(inner), about));
                }
            }
        }
    }
    let files = &mut scan.files;
    files.sort_unstable_by(|one, other| one.path.cmp(&other.path));
    Some(scan)
}

/// `None` for a name that is not UTF-8.
fn to_seen_file(path: &Path, about: About) -> Option<SeenFile> {
    Some(SeenFile {
        path: path.to_str()?.to_owned(),
        size: about.bytes,
        modified: about.modified,
    })
}

fn is_left_out(name: &str) -> bool {
    name.starts_with(['.', '~']) || LEFT_OUT.contains(&name)
}

/// Whether a scan of these sources could find something at the path. What is in none of them could be the name that the system has for
/// one that is.
fn is_found(path: &Path, sources: &HashSet<PathBuf>) -> bool {
    let inside = |source: &PathBuf| path.strip_prefix(source).ok();
    let mut places = sources.iter().filter_map(inside).peekable();
    let is_elsewhere = places.peek().is_none();
    let is_read = |inside: &Path| {
        let names = inside.components().map(|part| part.as_os_str());
        !names
            .into_iter()
            .any(|name| is_left_out(&name.to_string_lossy()))
    };
    (is_elsewhere || places.any(is_read)) && !path.ancestors().any(is_data_folder)
}

/// Watches sources for changes.
#[derive(Debug)]
pub(super) struct Watch {
    bell: Arc<Bell>,
    watcher: Option<RecommendedWatcher>,
    watched: Arc<Mutex<HashSet<PathBuf>>>,
}

impl Watch {
    pub(super) fn new(bell: Arc<Bell>) -> Self {
        Self {
            bell,
            watcher: None,
            watched: Arc::default(),
        }
    }

    /// Watches these and no others. Returns whether all of them are watched; otherwise changes are found by looking now and then.
    pub(super) fn follow(&mut self, sources: &[DocumentSource]) -> bool {
        if self.watcher.is_none() {
            let (bell, watched) = (Arc::clone(&self.bell), Arc::clone(&self.watched));
            let notice = move |event: notify::Result<notify::Event>| {
                let matters = |event: notify::Event| {
                    let is_vague = event.need_rescan() || event.paths.is_empty();
                    let sources = watched.lock();
                    let mut paths = event.paths.iter();
                    !event.kind.is_access()
                        && (is_vague || paths.any(|path| is_found(path, &sources)))
                };
                // An error means that events may have been lost.
                if event.map_or(true, matters) {
                    bell.ring();
                }
            };
            let config = Config::default().with_follow_symlinks(false);
            self.watcher = RecommendedWatcher::new(notice, config).ok();
        }
        let Some(watcher) = &mut self.watcher else {
            return false;
        };
        // A link in place of one could lead to the whole disk.
        let wanted: HashSet<PathBuf> = sources
            .iter()
            .map(|source| source.path.clone().into())
            .filter(|path: &PathBuf| sources::open(path).is_ok())
            .collect();
        // Not locked while the watcher works, since its thread waits for the lock.
        let mut watched = self.watched.lock().clone();
        watched.retain(|path| {
            let keep = wanted.contains(path);
            if !keep {
                // The system has forgotten one that is gone already.
                let _ = watcher.unwatch(path);
            }
            keep
        });
        for path in wanted {
            if !watched.contains(&path) && watcher.watch(&path, RecursiveMode::Recursive).is_ok() {
                watched.insert(path);
            }
        }
        let all = watched.len() == sources.len();
        *self.watched.lock() = watched;
        all
    }
}

#[cfg(test)]
mod tests {
    use super::{super::extract, *};
    use crate::{
        race::{Found, race},
        sources::tests::tempdir,
    };
    use data_encoding::HEXLOWER;
    use sha2::{Digest, Sha256};
    use std::{
        fs,
        os::unix::fs::{PermissionsExt, symlink},
        time::Duration,
    };

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
        let folder = tempdir();
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
        fs::write(at("b/empty.md"), "").unwrap();
        symlink(folder.path(), at("b/again")).unwrap();
        let found = scan(&source(folder.path(), true)).unwrap();
        assert_eq!(found.left_out("/d"), None);
        let files = found.files;
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
        let file = scan(&source(&at("g.jpg"), false)).unwrap();
        assert_eq!(file.files.len(), 1);
        assert_eq!(scan(&source(&at("none"), true)), None);
        assert_eq!(scan(&source(&at("none"), false)), None);
    }

    /// A source that another program exchanges with a link to a folder of the same form.
    fn exchange(time: Duration) {
        let root = tempdir();
        let path = root.path();
        let (papers, link) = (path.join("papers"), path.join("link"));
        for (folder, text) in [("papers", "own"), ("private", "secret")] {
            fs::create_dir_all(path.join(folder).join("inner")).unwrap();
            fs::write(path.join(folder).join("inner/a.md"), text).unwrap();
        }
        symlink(path.join("private"), &link).unwrap();
        let inner = papers.join("inner/a.md");
        let own = HEXLOWER.encode(&Sha256::digest("own"));
        for source in [source(&papers, true), source(&inner, false)] {
            race(time, &papers, &link, || match scan(&source) {
                Some(scan) if scan.files.iter().any(|file| file.size != 3) => Found::Foreign,
                Some(_) => Found::Own,
                None => Found::Refused,
            });
        }
        race(time, &papers, &link, || match extract::open(&inner) {
            Ok(opened) if opened.sha256 != own => Found::Foreign,
            Ok(_) => Found::Own,
            Err(_) => Found::Refused,
        });
    }

    #[test]
    fn a_source_exchanged_with_a_link_is_not_left() {
        exchange(Duration::from_millis(400));
    }

    #[test]
    #[ignore = "slow"]
    fn a_source_exchanged_with_a_link_for_long_is_not_left() {
        exchange(Duration::from_secs(10));
    }

    #[test]
    fn what_is_not_seen_of_a_folder_is_named() {
        let mut scan = Scan {
            is_cut: true,
            ..Scan::default()
        };
        let left_out = scan.left_out("/d").unwrap();
        assert!(
            left_out.starts_with("/d has more than 50000 files"),
            "{left_out}"
        );
        scan.unreadable = vec!["/d/a".to_owned()];
        let left_out = scan.left_out("/d").unwrap();
        assert!(left_out.starts_with("/d/a cannot be read"), "{left_out}");
        scan.unreadable.push("/d/b".to_owned());
        let left_out = scan.left_out("/d").unwrap();
        assert!(left_out.starts_with("/d/a and 1 other"), "{left_out}");
    }

    #[test]
    fn a_folder_within_that_cannot_be_read_is_not_gone() {
        if rustix::process::geteuid().is_root() {
            return tierbar_skip::skip("the administrator can read all folders");
        }
        let folder = tempdir();
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).unwrap();
        fs::write(folder.path().join("a.md"), "x").unwrap();
        fs::set_permissions(&inner, PermissionsExt::from_mode(0o000)).unwrap();
        let found = scan(&source(folder.path(), true)).unwrap();
        assert_eq!(found.files.len(), 1);
        assert_eq!(found.unreadable, [inner.to_str().unwrap()]);
        fs::set_permissions(&inner, PermissionsExt::from_mode(0o700)).unwrap();
    }

    #[test]
    fn a_change_matters_where_a_scan_would_look() {
        let sources = HashSet::from([PathBuf::from("/home/me/.notes")]);
        let is_found = |path: &str| is_found(Path::new(path), &sources);
        assert!(is_found("/home/me/.notes/a.md"));
        assert!(is_found("/home/me/.notes"));
        assert!(!is_found("/home/me/.notes/.git/index"));
        assert!(!is_found("/home/me/.notes/target/x.txt"));
        // The system may know a source by another name.
        assert!(is_found("/private/home/me/.notes/.git/index"));
    }
}

//! The files of folders: found, and watched.

mod left_out;

use crate::{
    own_data::{OwnData, is_data_folder},
    sources,
};
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use left_out::{LeftOut, Why};
use notify::{Config, RecommendedWatcher, RecursiveMode, Watcher};
use parking_lot::Mutex;
use std::{
    collections::{HashMap, HashSet},
    io::Read,
    path::{Path, PathBuf},
    rc::Rc,
    sync::Arc,
};
use tierbar_core::documents::DocumentSource;
use tierbar_documents::is_readable;
use tierbar_nofollow::{About, Entry, OpenError, OpenFile, locate, reason};
use tierbar_store::SeenFile;
use tokio::sync::watch;

/// Folders within folders.
const DEEPEST: usize = 32;
const MOST_FILES: usize = 50_000;
/// Folders of programs, which have thousands of generated texts.
const GENERATED: [&str; 5] = [
    "node_modules",
    "target",
    "venv",
    "__pycache__",
    "site-packages",
];
/// A folder with one of these is generated, too: a cache (bford.info/cachedir) or Python's virtual environment.
const MARKS: [&str; 2] = ["CACHEDIR.TAG", "pyvenv.cfg"];
/// What programs write about the versions of others, of the kinds that are read.
const LOCKS: [&str; 4] = [
    "npm-shrinkwrap.json",
    "package-lock.json",
    "packages.lock.json",
    "pnpm-lock.yaml",
];
const GITIGNORE: &str = ".gitignore";
/// In bytes. The longest of well-known projects have a tenth of it.
const LONGEST_GITIGNORE: u64 = 64 << 10;
/// The most lines of all of them: as patterns, these take some 50 MiB, and two seconds to compile.
const MOST_RULES: usize = 20_000;

/// A source of which more cannot be read stays as it was.
const MOST_UNREADABLE: usize = 100;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Scan {
    pub(super) files: Vec<SeenFile>,
    /// What in it cannot be read, and may be as it was.
    pub(super) unreadable: Vec<Unreadable>,
    /// The files and folders in iCloud only, and why they are not searched. Those with files that were read before are.
    pub(super) in_cloud: HashMap<PathBuf, Option<Why>>,
    left_out: LeftOut,
    /// How many lines of `.gitignore` files are followed.
    rules: usize,
    /// Its keys are no documents, and its logs change whenever one is read.
    own: OwnData,
}

/// A folder that cannot be read, or a name in one that cannot be looked at, and why.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable {
    pub(super) path: String,
    reason: String,
}

impl Scan {
    /// Keeps the files in iCloud only as they were read before. `known`: the files of the source that were found before.
    pub(super) fn keep(&mut self, known: Vec<SeenFile>) {
        for file in known {
            let mut places = Path::new(&file.path).ancestors();
            if let Some(place) = places.find(|place| self.in_cloud.contains_key(*place)) {
                self.in_cloud.insert(place.to_owned(), None);
                self.files.push(file);
            }
        }
        for why in self.in_cloud.values().flatten() {
            self.left_out.note(*why);
        }
    }

    /// Says what of the source is not searched, or not as it is now, if anything.
    pub(super) fn left_out(&self) -> Option<String> {
        let as_it_was = match self.unreadable.as_slice() {
            [] => None,
            [Unreadable { path, reason }] => Some(format!(
                "{path} cannot be read ({reason}), and is searched as it was"
            )),
            [Unreadable { path, reason }, others @ ..] => Some(format!(
                "{path} and {} more cannot be read ({reason}), and are searched as they were",
                others.len()
            )),
        };
        let sentences: Vec<String> = as_it_was
            .into_iter()
            .chain(self.left_out.sentence())
            .collect();
        (!sentences.is_empty()).then(|| sentences.join(". "))
    }
}

/// A folder that is to be looked into.
struct Folder {
    /// Its path in the source.
    place: PathBuf,
    depth: usize,
    /// Those of the folders above it, the deepest last.
    rules: Vec<Rc<Gitignore>>,
}

/// Returns the files of a source; `None` if it is not there, such as on a disconnected disk, or if a link has its path.
pub(super) fn scan(source: &DocumentSource) -> Option<Scan> {
    let path = Path::new(&source.path);
    let (root, own) = sources::open_with_data(path).ok()?;
    let mut scan = Scan {
        own,
        ..Scan::default()
    };
    if !source.is_folder {
        // What is in iCloud only stays as it was read.
        let about = root.about().ok().filter(|about| !about.in_cloud)?;
        scan.files.push(to_seen_file(path, about)?);
        return Some(scan);
    }
    let mut folders = vec![Folder {
        place: PathBuf::new(),
        depth: 0,
        rules: Vec::new(),
    }];
    while let Some(folder) = folders.pop() {
        if scan.unreadable.len() > MOST_UNREADABLE {
            break;
        }
        let whole = path.join(&folder.place);
        let (opened, mut entries) = match read_folder(&root, &folder.place) {
            Ok(read) => read,
            // The source itself cannot be read.
            Err(_) if folder.depth == 0 => return None,
            Err(reason) => {
                scan.keep_unread(&whole, reason);
                continue;
            }
        };
        // That of another Tierbar, too.
        if is_data_folder(&opened) {
            continue;
        }
        // In an order that stays, so that the same files are left out where there are too many.
        entries.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        scan.look_into(folder, &whole, &opened, entries, &mut folders);
    }
    if scan.unreadable.len() > MOST_UNREADABLE {
        let mut all = Scan::default();
        all.keep_unread(
            path,
            format!("more than {MOST_UNREADABLE} names in it are refused"),
        );
        return Some(all);
    }
    let files = &mut scan.files;
    files.sort_unstable_by(|one, other| one.path.cmp(&other.path));
    Some(scan)
}

/// Opens a folder of a source and reads all its names, or returns why it cannot: with a part of them, the others would seem gone.
fn read_folder(source: &OpenFile, place: &Path) -> Result<(OpenFile, Vec<Entry>), String> {
    let opened = source.inside(place).map_err(|error| match error {
        OpenError::System { error, .. } => reason(&error),
        error => error.to_string(),
    })?;
    let entries = opened.entries().and_then(Iterator::collect);
    let entries = entries.map_err(|error| reason(&error))?;
    Ok((opened, entries))
}

impl Scan {
    fn keep_unread(&mut self, path: &Path, reason: String) {
        let path = path.to_str().map(str::to_owned);
        self.unreadable
            .extend(path.map(|path| Unreadable { path, reason }));
    }

    fn look_into(
        &mut self,
        mut folder: Folder,
        whole: &Path,
        opened: &OpenFile,
        entries: Vec<Entry>,
        folders: &mut Vec<Folder>,
    ) {
        let find = |name: &str| entries.iter().find(|entry| entry.name == name);
        if folder.depth > 0 && MARKS.iter().any(|mark| find(mark).is_some()) {
            return self.left_out.note(Why::Generated);
        }
        if let Some(Entry { about, fault, .. }) = find(GITIGNORE) {
            // Without its rules, what they leave out would be read.
            if let Some(error) = fault {
                let why = format!("its {GITIGNORE} is refused: {}", reason(error));
                return self.keep_unread(whole, why);
            }
            if about.in_cloud {
                return self.keep_unread(whole, format!("its {GITIGNORE} is in iCloud only"));
            }
            let rules = rules_of(opened, whole, &mut self.rules);
            folder.rules.extend(rules.map(Rc::new));
        }
        for Entry { name, about, fault } in entries {
            let (inner, path) = (folder.place.join(&name), whole.join(&name));
            let name = name.to_string_lossy();
            if is_hidden(&name) || self.own.has(about) {
                continue;
            }
            if let Some(error) = fault {
                // Whether it is a folder is not known.
                let is_ignored = |is_folder| is_ignored(&folder.rules, &path, is_folder);
                if !(is_generated(&name) || is_ignored(true) || is_ignored(false)) {
                    self.keep_unread(&path, reason(&error));
                }
                continue;
            }
            let is_document = about.is_file && about.bytes > 0 && is_readable(&inner);
            if !(about.is_folder || is_document) {
                continue;
            }
            let why = if about.is_folder && is_generated(&name) {
                Some(Why::Generated)
            } else if is_ignored(&folder.rules, &path, about.is_folder) {
                Some(match about.is_folder {
                    true => Why::IgnoredFolder,
                    false => Why::IgnoredFile,
                })
            } else if about.is_folder {
                (folder.depth == DEEPEST).then_some(Why::TooDeep)
            } else if LOCKS.contains(&&*name) {
                Some(Why::Lock)
            } else if is_minified(&name) {
                Some(Why::Minified)
            } else {
                (self.files.len() >= MOST_FILES).then_some(Why::TooMany)
            };
            match why {
                Some(why) => self.left_out.note(why),
                None if about.in_cloud => {
                    let why = match about.is_folder {
                        true => Why::FolderInCloud,
                        false => Why::FileInCloud,
                    };
                    self.in_cloud.insert(path, Some(why));
                }
                None if about.is_folder => folders.push(Folder {
                    place: inner,
                    depth: folder.depth + 1,
                    rules: folder.rules.clone(),
                }),
                None => match to_seen_file(&path, about) {
                    Some(file) => self.files.push(file),
                    None => self.left_out.note(Why::Unnamed),
                },
            }
        }
    }
}

/// Returns the rules of a folder's `.gitignore`; `None` if it is a link, not to be read or too long, also with the `lines` before. A line
/// that is no rule is none.
fn rules_of(folder: &OpenFile, whole: &Path, lines: &mut usize) -> Option<Gitignore> {
    let file = folder.inside(Path::new(GITIGNORE)).ok()?;
    if !file.about().ok()?.is_file {
        return None;
    }
    let mut bytes = Vec::new();
    let mut file = file.into_file().take(LONGEST_GITIGNORE + 1);
    file.read_to_end(&mut bytes).ok()?;
    if bytes.len() as u64 > LONGEST_GITIGNORE {
        return None;
    }
    let text = String::from_utf8_lossy(&bytes);
    let all = lines.saturating_add(text.lines().count());
    if all > MOST_RULES {
        return None;
    }
    *lines = all;
    let mut rules = GitignoreBuilder::new(whole);
    for line in text.trim_start_matches('\u{feff}').lines() {
        let _ = rules.add_line(None, line);
    }
    rules.build().ok()
}

/// Whether Git would leave it out: the rules nearest to it come first.
fn is_ignored(rules: &[Rc<Gitignore>], path: &Path, is_folder: bool) -> bool {
    let mut matches = rules
        .iter()
        .rev()
        .map(|rules| rules.matched(path, is_folder));
    matches
        .find(|found| !found.is_none())
        .is_some_and(|found| found.is_ignore())
}

/// `None` for a name that is not UTF-8.
fn to_seen_file(path: &Path, about: About) -> Option<SeenFile> {
    Some(SeenFile {
        path: path.to_str()?.to_owned(),
        size: about.bytes,
        modified: about.modified,
    })
}

fn is_hidden(name: &str) -> bool {
    name.starts_with(['.', '~'])
}

fn is_generated(name: &str) -> bool {
    GENERATED.contains(&name)
}

/// Whether the name says that a program has taken all spaces out of a script or a style sheet.
fn is_minified(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(stem, ending)| {
        let is_code = matches!(ending, "js" | "mjs" | "cjs" | "css");
        is_code && (stem.ends_with(".min") || stem.ends_with("-min"))
    })
}

/// Whether a scan of these sources could find something at the path. What is in none of them could be the name that the system has for
/// one that is.
fn is_found(path: &Path, sources: &HashSet<PathBuf>) -> bool {
    let inside = |source: &PathBuf| path.strip_prefix(source).ok();
    let mut places = sources.iter().filter_map(inside).peekable();
    let is_elsewhere = places.peek().is_none();
    let is_read = |inside: &Path| {
        let rules = inside.file_name().is_some_and(|name| name == GITIGNORE);
        let place = inside.parent().filter(|_| rules).unwrap_or(inside);
        !place.iter().any(|name| {
            let name = name.to_string_lossy();
            is_hidden(&name) || is_generated(&name)
        })
    };
    let is_data = |place| locate(place).is_ok_and(|folder| is_data_folder(&folder));
    (is_elsewhere || places.any(is_read)) && !path.ancestors().skip(1).any(is_data)
}

#[derive(Debug)]
pub(super) struct Watch {
    bell: watch::Sender<()>,
    watcher: Option<RecommendedWatcher>,
    watched: Arc<Mutex<HashSet<PathBuf>>>,
}

impl Watch {
    pub(super) fn new(bell: watch::Sender<()>) -> Self {
        Self {
            bell,
            watcher: None,
            watched: Arc::default(),
        }
    }

    /// Watches these and no others. Returns whether all of them are watched; otherwise changes are found by looking now and then.
    pub(super) fn follow(&mut self, sources: &[DocumentSource]) -> bool {
        if self.watcher.is_none() {
            let (bell, watched) = (self.bell.clone(), Arc::clone(&self.watched));
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
                    bell.send_replace(());
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
mod tests;

//! Watches folders for changes through the system.

use crate::{
    folder::{file_name, is_hidden},
    platform::WATCHES_TREES,
};
use notify::{
    Config, ErrorKind, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher,
    event::{AccessKind, AccessMode, ModifyKind},
};
use parking_lot::Mutex;
use std::{
    collections::HashSet,
    mem,
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::sync::Notify;

/// Endings of files that are not whole yet.
const UNFINISHED: [&str; 6] = [
    ".part",
    ".download",
    ".crdownload",
    ".tmp",
    ".incomplete",
    "-partial",
];

#[derive(Debug, Default)]
pub(super) struct Bell {
    rung: Notify,
    /// Removed or renamed folders: a folder with that name is a new one.
    gone: Mutex<HashSet<PathBuf>>,
}

impl Bell {
    pub(super) fn ring(&self) {
        self.rung.notify_one();
    }

    pub(super) async fn rung(&self) {
        self.rung.notified().await;
    }

    pub(super) fn hear(&self, event: notify::Result<Event>) {
        let Ok(event) = event else {
            // Events may have been lost.
            return self.ring();
        };
        if !is_relevant(&event) {
            return;
        }
        if matches!(
            event.kind,
            EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_))
        ) {
            self.gone.lock().extend(event.paths);
        }
        self.ring();
    }
}

/// Reads are not changes, and hidden or partial files are not models.
fn is_relevant(event: &Event) -> bool {
    let written = EventKind::Access(AccessKind::Close(AccessMode::Write));
    if event.kind.is_access() && event.kind != written {
        return false;
    }
    let relevant = |path: &PathBuf| {
        let name = file_name(path).to_ascii_lowercase();
        !is_hidden(name.as_ref()) && !UNFINISHED.iter().any(|ending| name.ends_with(ending))
    };
    event.need_rescan() || event.paths.is_empty() || event.paths.iter().any(relevant)
}

pub(super) type Make = fn(Arc<Bell>) -> notify::Result<Box<dyn Watcher + Send>>;

pub(super) fn recommended_watcher(bell: Arc<Bell>) -> notify::Result<Box<dyn Watcher + Send>> {
    let watcher = RecommendedWatcher::new(move |event| bell.hear(event), Config::default())?;
    Ok(Box::new(watcher))
}

pub(super) struct WatchedFolders {
    make: Make,
    bell: Arc<Bell>,
    watcher: Option<Box<dyn Watcher + Send>>,
    folders: HashSet<PathBuf>,
    /// Why some folders cannot be watched.
    blind: Option<String>,
}

impl WatchedFolders {
    pub(super) fn new(make: Make, bell: &Arc<Bell>) -> Self {
        Self {
            make,
            bell: Arc::clone(bell),
            watcher: None,
            folders: HashSet::new(),
            blind: None,
        }
    }

    pub(super) fn is_blind(&self) -> bool {
        self.blind.is_some()
    }

    pub(super) fn ring(&self) {
        self.bell.ring();
    }

    pub(super) fn notice(&self) -> Option<String> {
        let why = self.blind.as_ref()?;
        Some(format!(
            "Changes in the models folders are noticed with a delay of some seconds, because the system cannot watch \
             them: {why}."
        ))
    }

    /// Watches these folders and no others. `true` if one of them is new: what happened in it before is unknown.
    pub(super) fn to(&mut self, folders: &[PathBuf]) -> bool {
        self.blind = None;
        if self.watcher.is_none() {
            match (self.make)(Arc::clone(&self.bell)) {
                Ok(watcher) => self.watcher = Some(watcher),
                Err(error) => self.blind = Some(error.to_string()),
            }
        }
        let Some(watcher) = &mut self.watcher else {
            return false;
        };
        let gone = mem::take(&mut *self.bell.gone.lock());
        let (wanted, mode) = match WATCHES_TREES {
            true => (trees(folders), RecursiveMode::Recursive),
            false => (folders.to_vec(), RecursiveMode::NonRecursive),
        };
        let wanted: HashSet<PathBuf> = wanted.into_iter().collect();
        let mut change = watcher.paths_mut();
        self.folders.retain(|folder| {
            let keep = wanted.contains(folder) && !gone.contains(folder);
            if !keep {
                // The system has forgotten one that is gone already.
                let _ = change.remove(folder);
            }
            keep
        });
        let mut new = false;
        for folder in wanted {
            if self.folders.contains(&folder) {
                continue;
            }
            match change.add(&folder, mode) {
                Ok(()) => {
                    new = true;
                    self.folders.insert(folder);
                }
                Err(error) if is_about(&error, &folder) => {}
                Err(error) => {
                    self.blind = Some(error.to_string());
                    break;
                }
            }
        }
        if let Err(error) = change.commit() {
            self.blind = Some(error.to_string());
        }
        new
    }
}

/// Returns whether the error is about this folder only, such as that it was just removed.
fn is_about(error: &notify::Error, folder: &Path) -> bool {
    match &error.kind {
        ErrorKind::PathNotFound | ErrorKind::WatchNotFound => true,
        ErrorKind::Io(_) => !folder.is_dir(),
        _ => false,
    }
}

/// Returns the real paths of the folders, without those below another.
fn trees(folders: &[PathBuf]) -> Vec<PathBuf> {
    let mut real: Vec<_> = folders
        .iter()
        .filter_map(|folder| folder.canonicalize().ok())
        .collect();
    real.sort();
    let mut trees: Vec<PathBuf> = Vec::new();
    for folder in real {
        if !trees.last().is_some_and(|above| folder.starts_with(above)) {
            trees.push(folder);
        }
    }
    trees
}

#[cfg(test)]
mod tests;

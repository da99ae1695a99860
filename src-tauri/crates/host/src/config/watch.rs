//! Watches the file for changes.

use super::ConfigFile;
use notify::{RecommendedWatcher, RecursiveMode, Watcher, recommended_watcher};
use std::{path::Path, sync::Arc, time::Duration};
use tokio::{sync::Notify, time::sleep};

/// Editors write in several steps: truncate and write, or write beside and rename.
const SETTLING: Duration = Duration::from_millis(200);

/// Reports changes while it lives.
#[derive(Debug)]
pub(crate) struct ConfigWatch {
    changed: Arc<Notify>,
    _watcher: RecommendedWatcher,
}

/// Watches the folders of the file and of its link target: to the system, a replaced file is another one.
pub(crate) fn watch(file: &ConfigFile) -> Result<ConfigWatch, notify::Error> {
    let changed = Arc::new(Notify::new());
    let target = file
        .path()
        .canonicalize()
        .unwrap_or_else(|_| file.path().to_owned());
    let places = [file.path().to_owned(), target];
    let names: Vec<_> = places
        .iter()
        .filter_map(|path| path.file_name().map(ToOwned::to_owned))
        .collect();
    let bell = Arc::clone(&changed);
    let mut watcher = recommended_watcher(move |event: notify::Result<notify::Event>| {
        // An error means that events may have been lost.
        let ours = event.map_or(true, |event| {
            !event.kind.is_access()
                && event.paths.iter().any(|path| {
                    path.file_name()
                        .is_some_and(|name| names.iter().any(|ours| ours == name))
                })
        });
        if ours {
            bell.notify_one();
        }
    })?;
    let mut folders: Vec<_> = places.iter().filter_map(|path| path.parent()).collect();
    folders.dedup();
    for folder in folders {
        watcher.watch(folder as &Path, RecursiveMode::NonRecursive)?;
    }
    Ok(ConfigWatch {
        changed,
        _watcher: watcher,
    })
}

impl ConfigWatch {
    /// Waits until the file may have changed and its writer is likely done.
    pub(crate) async fn next(&self) {
        self.changed.notified().await;
        sleep(SETTLING).await;
    }
}

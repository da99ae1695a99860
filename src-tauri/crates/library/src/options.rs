//! Where models are looked for.

use crate::AppFolders;
use std::path::{Path, PathBuf};
use tierbar_core::{config::LibraryConfig, home::from_home};

/// The folders of models.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LibraryOptions {
    /// The models folder. Tierbar owns its files.
    pub models_dir: PathBuf,
    /// Folders that the user added. Their models are used in place.
    pub folders: Vec<PathBuf>,
    /// Folders whose models belong to another app, whatever path leads there.
    pub apps: AppFolders,
    /// Whether the other apps' models are listed.
    pub other_apps: bool,
}

impl LibraryOptions {
    /// Returns the configured options for the user with this home folder.
    pub fn new(models_dir: PathBuf, config: &LibraryConfig, home: &Path) -> Self {
        let full = |folder: &String| from_home(folder, Some(home.to_owned()));
        Self {
            models_dir,
            folders: config.folders.iter().map(full).collect(),
            apps: AppFolders::of_user(home),
            other_apps: config.other_apps,
        }
    }
}

/// The models folder alone.
impl From<PathBuf> for LibraryOptions {
    fn from(models_dir: PathBuf) -> Self {
        Self {
            models_dir,
            ..Self::default()
        }
    }
}

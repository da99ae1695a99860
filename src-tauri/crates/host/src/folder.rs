//! The data folder: where it is, and the names in it.

use crate::own_data::OwnData;
use std::{
    fs::{self, DirBuilder, Metadata, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};
use tierbar_contexts::SwapFolder;
use tierbar_core::{Code, Error, TierId, config::PolicyConfig, home::from_home};
use tierbar_fetch::blocking;

/// The speeds of the models' last answers.
pub(crate) const SPEEDS: &str = "speeds.json";
/// How models did in examinations.
pub(crate) const MARKS: &str = "marks.json";
/// The bandwidths of this machine's memory and disks.
pub(crate) const BANDWIDTH: &str = "bandwidth.json";
/// Loads that are running, or never ended.
pub(crate) const LOADS: &str = "loads.json";
/// What the hub said of the catalog's files.
pub(crate) const CATALOG: &str = "catalog.json";
/// The tiers that wait for a download.
pub(crate) const ASSIGNMENTS: &str = "assignments.json";
/// The list of downloads.
pub(crate) const DOWNLOADS: &str = "downloads.json";
/// The server's certificate, if Tierbar created it, and its key.
pub(crate) const CERTIFICATE: &str = "certificate.pem";
pub(crate) const CERTIFICATE_KEY: &str = "certificate-key.pem";

/// Returns the default data folder: `TIERBAR_HOME`, or else the system's folder for application data.
pub fn data_folder() -> PathBuf {
    if let Some(home) = path_variable("TIERBAR_HOME") {
        return home;
    }
    crate::platform::data_folder(&path_variable("HOME").unwrap_or_default())
}

/// Returns a variable's path, unless it is empty.
pub(crate) fn path_variable(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

/// An existing data folder.
#[derive(Debug, Clone)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Opens the folder, creating what is missing. Only the user may enter it.
    ///
    /// # Errors
    /// `Storage` with the folder that cannot be created.
    pub(crate) fn open(home: Option<PathBuf>) -> Result<Self, Error> {
        let home = home.unwrap_or_else(data_folder);
        let home = std::path::absolute(&home).map_err(|error| unusable(&home, &error))?;
        let folder = Self(home);
        for path in [
            folder.home(),
            &folder.models(),
            &folder.logs(),
            &folder.run(),
        ] {
            create_private(path).map_err(|error| unusable(path, &error))?;
        }
        // Models may be on a disk that knows no owners; what is written there goes through no links.
        for path in [folder.home(), &folder.logs(), &folder.run()] {
            check_owner(path)?;
        }
        OwnData::add(folder.home());
        Ok(folder)
    }

    /// The folder as it is; nothing is created.
    pub(crate) fn at(home: PathBuf) -> Self {
        Self(home)
    }

    pub(crate) fn home(&self) -> &Path {
        &self.0
    }

    pub(crate) fn models(&self) -> PathBuf {
        self.0.join("models")
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.0.join("logs")
    }

    pub(crate) fn run(&self) -> PathBuf {
        self.0.join("run")
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.0.join("config.toml")
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.0.join("tierbar.db")
    }

    pub(crate) fn contexts(&self) -> PathBuf {
        self.0.join("contexts")
    }

    /// Conversations saved when their tier was unloaded.
    pub(crate) fn conversations(&self) -> PathBuf {
        self.0.join("conversations")
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The file of a tier's last report of one kind of measurement.
    pub(crate) fn measured(&self, kind: &str, tier: &TierId) -> PathBuf {
        self.0.join("measured").join(format!("{kind}-{tier}.json"))
    }

    pub(crate) fn token(&self) -> PathBuf {
        token_file(&self.0)
    }

    /// Keeps the folder of conversations within its limit, or removes it, as configured. Workers save only if it exists, so turning the
    /// setting off also applies to a loaded worker.
    pub(crate) async fn apply_conversations(&self, policy: &PolicyConfig) {
        let most = policy.conversations();
        let bytes = u64::from(most.unwrap_or_default()) << 20;
        let swapped = SwapFolder::new(self.conversations(), bytes);
        let apply = move || match most {
            Some(_) => swapped.open(),
            None => swapped.close(),
        };
        if let Err(error) = blocking("the folder of conversations", apply).await {
            tracing::warn!("{}", error.message);
        }
    }

    /// Returns the folder of `models_dir` in the configuration.
    pub(crate) fn models_dir(&self, configured: &str) -> PathBuf {
        if configured.trim().is_empty() {
            return self.models();
        }
        self.configured(configured)
    }

    /// Resolves a path of the configuration.
    pub(crate) fn configured(&self, path: &str) -> PathBuf {
        self.0.join(from_home(path.trim(), path_variable("HOME")))
    }
}

pub(crate) fn token_file(home: &Path) -> PathBuf {
    home.join("token")
}

/// An existing folder keeps its permissions, except that `run` is made private.
pub(crate) fn create_private(path: &Path) -> io::Result<()> {
    // A link to another folder, such as models on another disk, is the user's choice.
    if path.is_dir() {
        if path.ends_with("run") {
            fs::set_permissions(path, Permissions::from_mode(0o700))?;
        }
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Checks that no other user can put links into the folder, through which Tierbar would write to what they lead to.
///
/// # Errors
/// `Storage` for a folder of another user, or one that every user can change.
fn check_owner(path: &Path) -> Result<(), Error> {
    let found = fs::metadata(path).map_err(|error| unusable(path, &error))?;
    let shown = path.display();
    let (why, hint) = match owner_fault(&found, rustix::process::geteuid().as_raw()) {
        None => return Ok(()),
        Some(Fault::OfAnother) => (
            "belongs to another user",
            "set TIERBAR_HOME to a folder of your own".to_owned(),
        ),
        Some(Fault::Shared) => (
            "can be changed by every user of this computer",
            format!("check what is in it, then run: chmod go-w \"{shown}\""),
        ),
    };
    let message = format!("the folder {shown} {why}");
    Err(Error::new(Code::Storage, message).hint(hint))
}

#[derive(Debug, PartialEq, Eq)]
enum Fault {
    OfAnother,
    Shared,
}

/// The administrator may use any folder, as in a container.
fn owner_fault(found: &Metadata, user: u32) -> Option<Fault> {
    if user == 0 {
        None
    } else if found.uid() != user {
        Some(Fault::OfAnother)
    } else if found.mode() & 0o002 != 0 {
        Some(Fault::Shared)
    } else {
        None
    }
}

fn unusable(path: &Path, error: &io::Error) -> Error {
    let message = format!("the data folder {} cannot be used: {error}", path.display());
    Error::new(Code::Storage, message)
        .hint("free up space, or set TIERBAR_HOME to a folder that you can write to")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_data_folder_is_private() {
        let outer = tempfile::tempdir().unwrap();
        let folder = Folder::open(Some(outer.path().join("a/b"))).unwrap();
        for path in [
            folder.home().to_owned(),
            folder.run(),
            folder.models(),
            folder.logs(),
        ] {
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700, "{}", path.display());
        }
    }

    #[test]
    fn a_folder_that_others_can_change_is_refused() {
        let outer = tempfile::tempdir().unwrap();
        let found = |mode| {
            fs::set_permissions(outer.path(), Permissions::from_mode(mode)).unwrap();
            fs::metadata(outer.path()).unwrap()
        };
        let own = fs::metadata(outer.path()).unwrap().uid();
        // The administrator owns it where the tests run as one.
        let user = if own == 0 { 1000 } else { own };
        let fault = |mode, user| owner_fault(&found(mode), user);
        assert_eq!(fault(0o700, own + 1), Some(Fault::OfAnother));
        assert_eq!(fault(0o777, 0), None);
        if own == user {
            assert_eq!(fault(0o775, user), None);
            assert_eq!(fault(0o777, user), Some(Fault::Shared));
            assert_eq!(fault(0o1777, user), Some(Fault::Shared));
            let error = Folder::open(Some(outer.path().to_owned())).unwrap_err();
            assert!(error.hint.unwrap().contains("chmod go-w"));
        }
    }

    #[test]
    fn a_file_in_place_of_the_folder_is_named() {
        let outer = tempfile::tempdir().unwrap();
        let file = outer.path().join("file");
        fs::write(&file, "").unwrap();
        let error = Folder::open(Some(file.join("data"))).unwrap_err();
        assert_eq!(error.code, Code::Storage);
        assert!(error.message.contains(file.to_str().unwrap()), "{error}");
    }

    #[test]
    fn the_models_folder_can_be_set() {
        let outer = tempfile::tempdir().unwrap();
        let folder = Folder::open(Some(outer.path().to_owned())).unwrap();
        assert_eq!(folder.models_dir(" "), outer.path().join("models"));
        assert_eq!(folder.models_dir("more"), outer.path().join("more"));
        assert_eq!(folder.models_dir("/Volumes/m"), PathBuf::from("/Volumes/m"));
        let home = PathBuf::from(std::env::var_os("HOME").unwrap());
        assert_eq!(folder.models_dir("~/m"), home.join("m"));
        assert_eq!(folder.models_dir("~"), home);
    }
}

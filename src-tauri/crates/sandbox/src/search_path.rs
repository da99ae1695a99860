//! Where programs that are started by name are looked for.

use crate::platform::PACKAGES;
use std::{
    env,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

/// Where systems look without a `PATH`, and all that launchd gives to apps and services.
const SYSTEM: &str = "/usr/bin:/bin:/usr/sbin:/sbin";

/// Returns this process's `PATH` with the folders of package managers: an app and a service do not have those of the shell.
pub fn search_path() -> OsString {
    let path = env::var_os("PATH").unwrap_or_else(|| SYSTEM.into());
    completed(&path, PACKAGES, Path::is_dir)
}

/// Returns the path with those of `more` at its end that exist.
fn completed(path: &OsStr, more: &[&str], is_folder: impl Fn(&Path) -> bool) -> OsString {
    let mut folders: Vec<PathBuf> = env::split_paths(path).collect();
    for folder in more.iter().map(Path::new) {
        if !folders.iter().any(|known| known == folder) && is_folder(folder) {
            folders.push(folder.to_owned());
        }
    }
    // Parts of a path have no separators.
    env::join_paths(folders).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_packages_come_last_if_they_exist() {
        let brew = ["/opt/homebrew/bin", "/usr/local/bin", "/opt/local/bin"];
        let on_a_mac = |folder: &Path| folder != Path::new("/opt/local/bin");
        let completed = |path: &str| completed(path.as_ref(), &brew, on_a_mac);
        assert_eq!(
            completed(SYSTEM),
            OsStr::new("/usr/bin:/bin:/usr/sbin:/sbin:/opt/homebrew/bin:/usr/local/bin")
        );
        // A shell's own order holds.
        let shell = "/usr/local/bin:/opt/homebrew/bin:/usr/bin:/bin:/a b:.";
        assert_eq!(completed(shell), OsStr::new(shell));
    }
}

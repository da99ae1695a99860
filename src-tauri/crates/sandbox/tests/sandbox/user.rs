//! As whom the tests run commands: as themselves, or where they are root as an ordinary user.

use crate::{launcher, place::Place};
use std::{
    fs::{self, Permissions},
    io::Write,
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    path::{Path, PathBuf},
    sync::LazyLock,
};
use tempfile::NamedTempFile;
use tierbar_sandbox::{CommandResult, Request, Stop, run};

/// One that every system has.
pub(crate) const ORDINARY_USER: u32 = 65534;

impl Place {
    /// Also where the tests run as root, whom some limits of the kernel do not hold.
    pub(crate) fn of_ordinary_user() -> Option<Self> {
        let place = Self::new()?;
        if rustix::process::getuid().is_root() {
            for folder in [place.work.parent()?, &place.work, &place.hidden] {
                chown(folder, Some(ORDINARY_USER), Some(ORDINARY_USER)).unwrap();
            }
        }
        Some(place)
    }

    /// Runs a line of shell, as an ordinary user where the folder is that user's.
    pub(crate) fn run(&self, line: &str) -> CommandResult {
        let owner = fs::metadata(&self.work).unwrap().uid();
        let is_another_users = owner == ORDINARY_USER && rustix::process::getuid().is_root();
        let launcher = if is_another_users {
            launcher_of_ordinary_user()
        } else {
            launcher()
        };
        let request = Request::shell(line, self.work.clone(), self.policy.clone());
        let finished = run(launcher, &request, &Stop::default()).unwrap();
        // Otherwise what is not found to happen would prove nothing.
        let why = &finished.stderr.text;
        assert!(!why.starts_with("tierbar-sandbox: "), "not run: {why}");
        finished
    }
}

/// Starts the launcher as an ordinary user, from a folder that this user can read. Every run of the tests uses the same one.
fn launcher_of_ordinary_user() -> &'static Path {
    static START: LazyLock<PathBuf> = LazyLock::new(|| {
        let folder = std::env::temp_dir().join("tierbar-tests-of-ordinary-user");
        fs::create_dir_all(&folder).unwrap();
        let about = fs::symlink_metadata(&folder).unwrap();
        assert!(about.is_dir() && about.uid() == 0, "{}", folder.display());
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        // Another run may be using the one before.
        let put = |name: &str, content: &[u8]| {
            let mut file = NamedTempFile::new_in(&folder).unwrap();
            file.write_all(content).unwrap();
            fs::set_permissions(file.path(), Permissions::from_mode(0o755)).unwrap();
            let path = folder.join(name);
            file.persist(&path).unwrap();
            path
        };
        let program = put("tierbar-sandbox", &fs::read(launcher()).unwrap());
        let line = format!(
            "#!/bin/sh\nexec setpriv --reuid={ORDINARY_USER} --regid={ORDINARY_USER} --clear-groups '{}' \"$@\"\n",
            program.display()
        );
        put("start", line.as_bytes())
    });
    &START
}

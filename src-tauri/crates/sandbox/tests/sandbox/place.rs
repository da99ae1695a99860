//! Where the tests run commands, and as whom.

use crate::launcher;
use std::{
    fs::{self, Permissions},
    io::Write,
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    path::{Path, PathBuf},
    sync::LazyLock,
    thread,
};
use tempfile::{NamedTempFile, TempDir};
use tierbar_sandbox::{Finished, Limits, Policy, Request, Stop, enforcement, run};

/// An ordinary user that every system has.
const ORDINARY_USER: u32 = 65534;

/// A folder to work in, and one beside it that no command may see.
pub(crate) struct Place {
    root: TempDir,
    pub(crate) work: PathBuf,
    pub(crate) hidden: PathBuf,
    pub(crate) policy: Policy,
    launcher: &'static Path,
}

impl Place {
    /// Returns `None`, and says so, where nothing enforces a sandbox.
    pub(crate) fn new() -> Option<Self> {
        if let Err(error) = enforcement() {
            skip(&error.to_string());
            return None;
        }
        let root = tempfile::tempdir().unwrap();
        let path = root.path().canonicalize().unwrap();
        let (work, hidden) = (path.join("work"), path.join("hidden"));
        for folder in [&work, &hidden] {
            fs::create_dir(folder).unwrap();
        }
        fs::write(hidden.join("token"), "the token").unwrap();
        let policy = Policy {
            write: vec![work.clone()],
            protected: vec![hidden.clone()],
            limits: Limits {
                seconds: 60,
                ..Limits::default()
            },
            ..Policy::default()
        };
        Some(Self {
            root,
            work,
            hidden,
            policy,
            launcher: launcher(),
        })
    }

    /// Also where the tests run as root, whom some limits of the kernel do not hold.
    pub(crate) fn of_ordinary_user() -> Option<Self> {
        let mut place = Self::new()?;
        if rustix::process::getuid().is_root() {
            for folder in [place.root.path(), &place.work, &place.hidden] {
                chown(folder, Some(ORDINARY_USER), Some(ORDINARY_USER)).unwrap();
            }
            place.launcher = launcher_of_ordinary_user();
        }
        Some(place)
    }

    pub(crate) fn run(&self, line: &str) -> Finished {
        let request = Request::shell(line, self.work.clone(), self.policy.clone());
        let finished = run(self.launcher, &request, &Stop::default()).unwrap();
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

/// Says that this test can't run here, past the capture of its output: `tests/run` counts it as skipped.
pub(crate) fn skip(reason: &str) {
    let thread = thread::current();
    let line = format!("SKIPPED {}: {reason}\n", thread.name().unwrap_or("?"));
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}

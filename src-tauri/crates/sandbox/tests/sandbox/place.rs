//! Where tests run commands. The tests of the agent use it, too.

use std::{fs, io::Write, path::PathBuf, thread};
use tempfile::TempDir;
use tierbar_sandbox::{Limits, Policy, enforcement};

/// A folder to work in, and one beside it that no command may see.
pub(crate) struct Place {
    _root: TempDir,
    pub(crate) work: PathBuf,
    pub(crate) hidden: PathBuf,
    pub(crate) policy: Policy,
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
            _root: root,
            work,
            hidden,
            policy,
        })
    }
}

/// Says that this test can't run here, past the capture of its output: `tests/run` counts it as skipped.
pub(crate) fn skip(reason: &str) {
    let thread = thread::current();
    let line = format!("SKIPPED {}: {reason}\n", thread.name().unwrap_or("?"));
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}

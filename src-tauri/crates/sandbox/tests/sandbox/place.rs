//! Where tests run commands. The tests of the agent use it, too.

use std::{fs, path::PathBuf};
use tempfile::TempDir;
use tierbar_sandbox::{Limits, Policy, enforcement};
use tierbar_skip::skip;

/// A folder to work in, and one beside it that no command may see.
pub(crate) struct Place {
    _root: TempDir,
    pub(crate) work: PathBuf,
    pub(crate) hidden: PathBuf,
    pub(crate) policy: Policy,
}

impl Place {
    /// Returns `None` where nothing enforces a sandbox.
    pub(crate) fn new() -> Option<Self> {
        enforcement().ok()?;
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

/// Skips a test because nothing enforces a sandbox here.
pub(crate) fn skip_unsandboxed() {
    let reason = enforcement().err().map(|error| error.to_string());
    skip(&reason.unwrap_or_default());
}

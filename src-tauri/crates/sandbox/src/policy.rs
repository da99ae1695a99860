//! What a command may use.

use serde::{Deserialize, Serialize};
use std::path::{Component, Path, PathBuf};

/// What a command may read, write and reach. The system's programs and libraries can always be read.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// Folders and files to read and run, with all that is in them.
    pub read: Vec<PathBuf>,
    /// Folders to read, run and write.
    pub write: Vec<PathBuf>,
    pub network: Network,
    pub limits: Limits,
    /// What no folder above may contain or lie in, such as Tierbar's data with the token.
    pub protected: Vec<PathBuf>,
}

/// What a command may connect to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    #[default]
    None,
    /// The ports of the web, but for those of this machine's Tierbar.
    Web { without_ports: Vec<u16> },
}

impl Network {
    /// The TCP ports that a command may connect to.
    #[must_use]
    pub fn ports(&self) -> Vec<u16> {
        match self {
            Self::None => Vec::new(),
            Self::Web { without_ports } => {
                let web = [80, 443].into_iter();
                web.filter(|port| !without_ports.contains(port)).collect()
            }
        }
    }
}

/// How much a command and what it starts may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    pub seconds: u64,
    /// Of one process.
    pub cpu_seconds: u64,
    /// Of all processes together.
    pub memory_bytes: u64,
    /// A command that has more at a time, or 16 times as many threads, is ended.
    pub processes: u64,
    /// Of one file.
    pub file_bytes: u64,
    pub open_files: u64,
    /// What is kept of each stream: its beginning and its end.
    pub kept_output_bytes: usize,
    /// Of both streams. A command that writes more is ended.
    pub output_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: u64 = 1024 * 1024;
        Self {
            seconds: 120,
            cpu_seconds: 120,
            memory_bytes: 2048 * MIB,
            processes: 256,
            file_bytes: 512 * MIB,
            open_files: 1024,
            kept_output_bytes: 32 * 1024,
            output_bytes: 64 * MIB,
        }
    }
}

/// Why a policy is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    #[error("{} is no absolute path without \"..\"", .0.display())]
    NotAbsolute(PathBuf),
    #[error("{} cannot be used: {why}", .path.display())]
    Missing { path: PathBuf, why: String },
    #[error("{} would show {}, which no command may see; choose another folder", .0.display(), .1.display())]
    Protected(PathBuf, PathBuf),
    #[error("the command starts in {}, which it may not read", .0.display())]
    Outside(PathBuf),
    #[error("the whole disk cannot be granted; choose a folder")]
    Root,
}

impl Policy {
    /// Checks that the folders exist, are not the whole disk, do not show what is protected, and contain the one to start in.
    ///
    /// # Errors
    /// [`PolicyError`], with the folder.
    pub fn check(&self, folder: &Path) -> Result<(), PolicyError> {
        let protected: Vec<_> = self.protected.iter().map(|path| real_path(path)).collect();
        // What lies among the system's programs would be seen with them.
        for system in crate::platform::system_folders() {
            let Ok(system) = system.canonicalize() else {
                continue;
            };
            let mut seen = protected.iter().flatten();
            if let Some(other) = seen.find(|other| other.starts_with(&system)) {
                return Err(PolicyError::Protected(system, other.clone()));
            }
        }
        let mut granted = Vec::new();
        for path in self.read.iter().chain(&self.write) {
            let real = real_path(path)?;
            if real.parent().is_none() {
                return Err(PolicyError::Root);
            }
            for other in &protected {
                // What does not exist cannot be shown.
                let Ok(other) = other else { continue };
                if other.starts_with(&real) || real.starts_with(other) {
                    return Err(PolicyError::Protected(real, other.clone()));
                }
            }
            granted.push(real);
        }
        let start = real_path(folder)?;
        if !granted.iter().any(|granted| start.starts_with(granted)) {
            return Err(PolicyError::Outside(start));
        }
        Ok(())
    }
}

/// The path without symbolic links.
fn real_path(path: &Path) -> Result<PathBuf, PolicyError> {
    let plain = |part| matches!(part, Component::RootDir | Component::Normal(_));
    if !path.is_absolute() || !path.components().all(plain) {
        return Err(PolicyError::NotAbsolute(path.to_owned()));
    }
    path.canonicalize().map_err(|error| PolicyError::Missing {
        path: path.to_owned(),
        why: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::symlink};

    #[test]
    fn a_folder_that_shows_the_token_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        let (data, work) = (home.join("data"), home.join("work"));
        fs::create_dir_all(data.join("logs")).unwrap();
        fs::create_dir(&work).unwrap();
        symlink(&data, work.join("link")).unwrap();
        let check = |write: &Path, start: &Path| {
            let policy = Policy {
                write: vec![write.to_owned()],
                protected: vec![data.clone(), home.join("nothing")],
                ..Policy::default()
            };
            policy.check(start)
        };
        assert_eq!(check(&work, &work), Ok(()));
        for shown in [&home, &data, &data.join("logs"), &work.join("link")] {
            let refused = check(shown, shown);
            assert!(
                matches!(refused, Err(PolicyError::Protected(..))),
                "{shown:?}: {refused:?}"
            );
        }
        assert_eq!(
            check(Path::new("/"), Path::new("/")),
            Err(PolicyError::Root)
        );
        for start in [&data, &work.join("link"), &home] {
            assert!(
                matches!(check(&work, start), Err(PolicyError::Outside(_))),
                "{start:?}"
            );
        }
        let dots = work.join("..").join("data");
        assert_eq!(
            check(&dots, &dots),
            Err(PolicyError::NotAbsolute(dots.clone()))
        );
        assert!(matches!(
            check(&work.join("none"), &work),
            Err(PolicyError::Missing { .. })
        ));
    }

    #[test]
    fn data_among_the_systems_programs_is_refused() {
        let work = tempfile::tempdir().unwrap();
        let policy = Policy {
            write: vec![work.path().to_owned()],
            protected: vec!["/usr/bin".into()],
            ..Policy::default()
        };
        let refused = policy.check(work.path());
        assert!(
            matches!(refused, Err(PolicyError::Protected(..))),
            "{refused:?}"
        );
    }

    #[test]
    fn the_ports_of_tierbar_are_not_those_of_the_web() {
        assert!(Network::None.ports().is_empty());
        let without_ports = vec![443, 11435];
        assert_eq!(Network::Web { without_ports }.ports(), [80]);
    }
}

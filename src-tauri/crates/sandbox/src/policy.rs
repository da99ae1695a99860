//! What a command may use.

use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeSet,
    env, io, iter,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};
use tierbar_nofollow::{Identity, OpenError, OpenFile, locate};

/// What a command may read, write and reach. The system's programs and libraries can always be read.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// Folders and files to read and run, with all that is in them. These and all others by their real paths, without symbolic links.
    pub read: Vec<PathBuf>,
    /// Folders to read, run and write.
    pub write: Vec<PathBuf>,
    pub network: Network,
    pub limits: Limits,
    /// What no folder above may contain or lie in, such as Tierbar's data with the token.
    pub protected: Vec<PathBuf>,
}

/// What a command may connect to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    #[default]
    None,
    /// The ports of the web outside this machine and its network, through the launcher's proxy.
    Web,
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
    /// To servers, at a time.
    pub connections_at_once: u64,
    /// In all.
    pub connections: u64,
    /// To servers.
    pub sent_bytes: u64,
    pub received_bytes: u64,
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
            connections_at_once: 64,
            connections: 4096,
            sent_bytes: 64 * MIB,
            received_bytes: 2048 * MIB,
        }
    }
}

/// What a policy grants, each opened once: a command gets the very files that were checked, whatever has their paths by then.
#[derive(Debug)]
pub(crate) struct GrantedFiles {
    pub(crate) read: Vec<OpenFile>,
    pub(crate) write: Vec<OpenFile>,
    /// The folder that the command starts in, if it is not its own.
    pub(crate) folder: Option<OpenFile>,
}

/// Why a policy is refused.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    #[error(transparent)]
    NotOpened(#[from] OpenError),
    #[error("{} cannot be used: {why}", .path.display())]
    Unknown { path: PathBuf, why: io::Error },
    #[error("{} would show {}, which no command may see; choose another folder", .0.display(), .1.display())]
    Protected(PathBuf, PathBuf),
    #[error("{} holds {}, where Tierbar's programs are; choose another folder", .0.display(), .1.display())]
    Program(PathBuf, PathBuf),
    #[error(
        "{} can be changed by every user of this computer, who could replace the program that limits commands; run: chmod o-w {}",
        quoted(.0, " and "),
        quoted(.0, " ")
    )]
    Changeable(BTreeSet<PathBuf>),
    #[error("the command starts in {}, which it may not read", .0.display())]
    Outside(PathBuf),
    #[error("the whole disk cannot be granted; choose a folder")]
    Root,
}

impl Policy {
    /// Checks that the folders exist, are not the whole disk, do not show what is protected, cannot change the programs that enforce
    /// this, and contain the one to start in; and that not every user can change or replace the launcher.
    ///
    /// # Errors
    /// [`PolicyError`], with the folder.
    pub fn check(&self, folder: Option<&Path>, launcher: &Path) -> Result<(), PolicyError> {
        self.open(folder, launcher).map(drop)
    }

    /// Opens and checks what is granted.
    pub(crate) fn open(
        &self,
        folder: Option<&Path>,
        launcher: &Path,
    ) -> Result<GrantedFiles, PolicyError> {
        // What does not exist cannot be shown.
        let protected = self.protected.iter();
        let protected: Vec<_> = protected
            .filter_map(|path| path.canonicalize().ok())
            .map(ProtectedPath::new)
            .collect();
        // What lies among the system's programs would be seen with them.
        for system in crate::platform::system_folders() {
            let Ok(system) = system.canonicalize() else {
                continue;
            };
            if let Some(other) = protected
                .iter()
                .find(|other| other.path.starts_with(&system))
            {
                return Err(PolicyError::Protected(system, other.path.clone()));
            }
        }
        let programs = program_folders(launcher)?;
        let mut places = Vec::new();
        let mut open = |path: &PathBuf, changed: &[ProtectedPath]| {
            let opened = locate(path)?;
            let real = real_path(&opened)?;
            if real.parent().is_none() {
                return Err(PolicyError::Root);
            }
            let lineage = opened.lineage().map_err(|why| PolicyError::Unknown {
                path: real.clone(),
                why,
            })?;
            let overlaps = |other: &&ProtectedPath| other.overlaps(&real, &lineage);
            if let Some(other) = protected.iter().find(overlaps) {
                return Err(PolicyError::Protected(real, other.path.clone()));
            }
            if let Some(programs) = changed
                .iter()
                .find(|programs| programs.is_in(&real, &lineage))
            {
                return Err(PolicyError::Program(real, programs.path.clone()));
            }
            places.push(real);
            Ok(opened)
        };
        let read = self.read.iter().map(|path| open(path, &[]));
        let read = read.collect::<Result<_, _>>()?;
        let write = self.write.iter().map(|path| open(path, &programs));
        let write = write.collect::<Result<_, _>>()?;
        let folder = folder.map(locate).transpose()?;
        if let Some(folder) = &folder {
            let start = real_path(folder)?;
            if !places.iter().any(|place| start.starts_with(place)) {
                return Err(PolicyError::Outside(start));
            }
        }
        Ok(GrantedFiles {
            read,
            write,
            folder,
        })
    }
}

/// What no command may see, or change. It is known by its path, and where a bind mount gives it another one, by its identity.
#[derive(Debug)]
struct ProtectedPath {
    path: PathBuf,
    /// Of it and of all around it. Empty if it cannot be opened.
    lineage: Vec<Identity>,
}

impl ProtectedPath {
    fn new(path: PathBuf) -> Self {
        let opened = locate(&path).ok();
        let lineage = opened.and_then(|folder| folder.lineage().ok());
        Self {
            path,
            lineage: lineage.unwrap_or_default(),
        }
    }

    /// Whether one is in the other, of it and what has this real path and lineage.
    fn overlaps(&self, real: &Path, lineage: &[Identity]) -> bool {
        self.is_in(real, lineage) || real.starts_with(&self.path) || self.holds(lineage)
    }

    /// Whether it is in the folder with this real path and lineage.
    fn is_in(&self, real: &Path, lineage: &[Identity]) -> bool {
        let folder = lineage.first();
        self.path.starts_with(real) || folder.is_some_and(|folder| self.lineage.contains(folder))
    }

    /// Whether what has this lineage is in it, as a folder.
    fn holds(&self, lineage: &[Identity]) -> bool {
        self.lineage
            .first()
            .is_some_and(|own| lineage.contains(own))
    }
}

fn real_path(opened: &OpenFile) -> Result<PathBuf, PolicyError> {
    opened.real_path().map_err(|why| PolicyError::Unknown {
        path: opened.path().to_owned(),
        why,
    })
}

/// The host's own program, and those that it runs, some of them outside of the sandbox.
const PROGRAMS: [&str; 5] = [
    "tierbar",
    "tierbar-worker",
    "tierbar-guard",
    "tierbar-sandbox",
    "tierbar-extract",
];

fn quoted(paths: &BTreeSet<PathBuf>, between: &str) -> String {
    let paths = paths.iter().map(|path| format!("\"{}\"", path.display()));
    paths.collect::<Vec<_>>().join(between)
}

/// Whether every user can change what has this path.
fn is_changeable(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| {
        // In a folder such as /tmp, others cannot replace what is not theirs.
        let is_shared = found.is_dir() && found.mode() & 0o1000 != 0;
        found.mode() & 0o002 != 0 && !is_shared
    })
}

/// Returns the folders of the launcher, of this program, and of those of ours that are beside them, also by another name.
fn program_folders(launcher: &Path) -> Result<Vec<ProtectedPath>, PolicyError> {
    // One that does not exist will not start.
    let real = launcher.canonicalize().ok();
    let named = real.is_some().then_some(launcher);
    let paths = real.as_deref().into_iter().chain(named);
    // In each folder above, another could take its place.
    let places = paths.flat_map(Path::ancestors);
    let changeable = places.filter(|path| is_changeable(path));
    let changeable: BTreeSet<_> = changeable.map(Path::to_owned).collect();
    if !changeable.is_empty() {
        return Err(PolicyError::Changeable(changeable));
    }
    let this = env::current_exe().ok();
    let this_really = this.as_ref().and_then(|path| path.canonicalize().ok());
    let started = [Some(launcher.to_owned()), real, this, this_really];
    let mut folders = BTreeSet::new();
    for program in started.into_iter().flatten() {
        let beside = PROGRAMS.map(|name| program.with_file_name(name));
        for program in iter::once(program).chain(beside) {
            let Ok(real) = program.canonicalize() else {
                continue;
            };
            // Any of them may be a link, which could be replaced, to a file, which could be written.
            for folder in program.parent().into_iter().chain(real.parent()) {
                // What Cargo has built are hard links of the files there.
                let names = [folder.to_owned(), folder.join("deps")];
                folders.extend(names.iter().filter_map(|name| name.canonicalize().ok()));
            }
        }
    }
    Ok(folders.into_iter().map(ProtectedPath::new).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        fs::{self, Permissions},
        os::unix::fs::{PermissionsExt, symlink},
    };

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
            policy.check(Some(start), Path::new("/no/launcher"))
        };
        check(&work, &work).unwrap();
        for shown in [&home, &data, &data.join("logs")] {
            let refused = check(shown, shown);
            assert!(
                matches!(refused, Err(PolicyError::Protected(..))),
                "{refused:?}"
            );
        }
        let root = check(Path::new("/"), Path::new("/"));
        assert!(matches!(root, Err(PolicyError::Root)), "{root:?}");
        for start in [&data, &home] {
            let outside = check(&work, start);
            assert!(
                matches!(outside, Err(PolicyError::Outside(_))),
                "{outside:?}"
            );
        }
        let (link, dots) = (work.join("link"), work.join("..").join("data"));
        for not_opened in [
            check(&link, &link),
            check(&work, &link),
            check(&dots, &dots),
            check(&work.join("none"), &work),
        ] {
            assert!(
                matches!(not_opened, Err(PolicyError::NotOpened(_))),
                "{not_opened:?}"
            );
        }
    }

    #[test]
    fn what_enforces_a_policy_cannot_be_changed_under_it() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let (programs, launcher) = (root.join("target"), root.join("target/launcher"));
        fs::create_dir(&programs).unwrap();
        fs::write(&launcher, "").unwrap();
        let policy = |read: &[&PathBuf], write: &[&PathBuf]| Policy {
            read: read.iter().copied().cloned().collect(),
            write: write.iter().copied().cloned().collect(),
            ..Policy::default()
        };
        policy(&[&root], &[]).check(Some(&root), &launcher).unwrap();
        let this = env::current_exe().unwrap().parent().unwrap().to_owned();
        for (folder, launcher) in [(&root, &launcher), (&programs, &launcher), (&this, &root)] {
            let refused = policy(&[], &[folder]).check(Some(folder), launcher);
            assert!(
                matches!(refused, Err(PolicyError::Program(..))),
                "{refused:?}"
            );
        }
        let change = |path: &Path, mode: u32| {
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        };
        for paths in [&[&launcher][..], &[&programs], &[&programs, &launcher]] {
            for path in paths {
                change(path, 0o777);
            }
            let refused = policy(&[&root], &[]).check(Some(&root), &launcher);
            let refused = refused.unwrap_err().to_string();
            let quoted: Vec<_> = paths
                .iter()
                .map(|path| format!("\"{}\"", path.display()))
                .collect();
            assert!(refused.starts_with(&quoted.join(" and ")), "{refused}");
            let command = format!("run: chmod o-w {}", quoted.join(" "));
            assert!(refused.ends_with(&command), "{refused}");
            for path in paths {
                change(path, 0o755);
            }
        }
    }

    #[test]
    fn a_launcher_that_others_can_replace_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let (above, work) = (root.join("above"), root.join("work"));
        let (folder, links) = (above.join("target/release"), root.join("links"));
        for folder in [&folder, &work, &links] {
            fs::create_dir_all(folder).unwrap();
        }
        let (launcher, link) = (folder.join("launcher"), links.join("launcher"));
        fs::write(&launcher, "").unwrap();
        symlink(&launcher, &link).unwrap();
        let policy = Policy {
            write: vec![work.clone()],
            ..Policy::default()
        };
        let check = |launcher: &Path| policy.check(Some(&work), launcher);
        let change = |path: &Path, mode: u32| {
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        };
        for (path, launcher) in [(&above, &launcher), (&above, &link), (&links, &link)] {
            check(launcher).unwrap();
            change(path, 0o777);
            let refused = check(launcher);
            assert!(
                matches!(&refused, Err(PolicyError::Changeable(named)) if named.iter().eq([path])),
                "{refused:?}"
            );
            change(path, 0o1777);
            check(launcher).unwrap();
            change(path, 0o755);
        }
    }

    #[test]
    fn no_program_of_ours_can_be_changed_where_it_lies() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let create = |name: String| {
            let folder = root.join(name);
            fs::create_dir_all(&folder).unwrap();
            folder
        };
        let programs = create("release".to_owned());
        let launcher = programs.join("launcher");
        fs::write(&launcher, "").unwrap();
        let check = |folder: &Path, launcher: &Path| {
            let policy = Policy {
                write: vec![folder.to_owned()],
                ..Policy::default()
            };
            policy.check(Some(folder), launcher)
        };
        let expect_refusal = |folder: &Path, launcher: &Path| {
            let refused = check(folder, launcher);
            assert!(
                matches!(refused, Err(PolicyError::Program(..))),
                "{}: {refused:?}",
                folder.display()
            );
        };
        // Cargo's files, of which the programs are hard links.
        expect_refusal(&create("release/deps".to_owned()), &launcher);
        for name in PROGRAMS {
            let elsewhere = create(format!("of-{name}"));
            let program = elsewhere.join(name);
            fs::write(&program, "").unwrap();
            check(&elsewhere, &launcher).unwrap();
            symlink(&program, programs.join(name)).unwrap();
            expect_refusal(&elsewhere, &launcher);
        }
        let links = create("links".to_owned());
        check(&links, &launcher).unwrap();
        let link = links.join("launcher");
        symlink(&launcher, &link).unwrap();
        for folder in [&links, &programs] {
            expect_refusal(folder, &link);
        }
    }

    #[test]
    fn data_among_the_systems_programs_is_refused() {
        let work = tempfile::tempdir().unwrap();
        let policy = Policy {
            write: vec![work.path().to_owned()],
            protected: vec!["/usr/bin".into()],
            ..Policy::default()
        };
        let refused = policy.check(Some(work.path()), Path::new("/no/launcher"));
        assert!(
            matches!(refused, Err(PolicyError::Protected(..))),
            "{refused:?}"
        );
    }
}

//! What a program is installed with: the files that are executed when it is, and what comes with these.
//!
//! A program of a virtual environment, of pipx, uv or npm is a link or a script in the user's home folder, and what runs it lies elsewhere
//! there. Only what looks like a program's own is found: files that can be executed, and folders of Python's and Node's libraries. So a
//! link that another program has put there leads to no file of the user's.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs::{self, File},
    io::Read,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
};

/// An interpreter can be a script as well.
const MOST_INTERPRETERS: usize = 5;
const MOST_LINKS: usize = 40;
/// As much of a script's first line as Linux reads.
const FIRST_LINE: u64 = 256;
/// Of `pyvenv.cfg`.
const LONGEST_CONFIGURATION: u64 = 4096;

/// What was found of a program. All paths are real ones.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Installation {
    /// What is executed: the program and what runs it.
    pub files: Vec<PathBuf>,
    /// Virtual environments and libraries.
    pub folders: Vec<PathBuf>,
    /// Where the files were found, by name.
    places: Vec<PathBuf>,
}

impl Installation {
    /// Finds a program as it is started in the folder `start`, with this `PATH`.
    #[must_use]
    pub fn find(program: &str, start: &Path, path: &OsStr) -> Self {
        let mut found = Self::default();
        let mut next = Some(OsString::from(program));
        for _ in 0..MOST_INTERPRETERS {
            let at = next.and_then(|name| found.look_up(&name, start, path));
            let Some(at) = at else { break };
            next = found.add_program(at);
        }
        found
    }

    /// Returns what of it a command would have to be granted: not what the system has, and nothing that would show what is `protected`, or
    /// the user's whole home folder.
    #[must_use]
    pub fn grants(&self, protected: &[PathBuf]) -> Vec<PathBuf> {
        let real = |paths: &[PathBuf]| -> Vec<PathBuf> {
            let real = paths.iter().filter_map(|path| path.canonicalize().ok());
            real.collect()
        };
        let (mut known, protected) = (real(&crate::platform::system_folders()), real(protected));
        let system = known.len();
        let home = tierbar_nofollow::home();
        for place in self.folders.iter().chain(&self.files) {
            let is_shown = |other: &PathBuf| other.starts_with(place) || place.starts_with(other);
            let is_home = home.as_ref().is_some_and(|home| home.starts_with(place));
            let is_known = known.iter().any(|known| place.starts_with(known));
            if !is_known && !is_home && !protected.iter().any(is_shown) {
                known.push(place.clone());
            }
        }
        known.split_off(system)
    }

    /// Returns a `PATH` by which its programs find one another.
    #[must_use]
    pub fn path(&self, path: &OsStr) -> OsString {
        let folders = self.places.iter().cloned().chain(env::split_paths(path));
        env::join_paths(folders).unwrap_or_else(|_| path.to_owned())
    }

    fn look_up(&self, name: &OsStr, start: &Path, path: &OsStr) -> Option<PathBuf> {
        if name.as_bytes().contains(&b'/') {
            return Some(start.join(name));
        }
        let mut folders = env::split_paths(path).chain(self.places.iter().cloned());
        folders.find_map(|folder| Some(folder.join(name)).filter(|at| is_executable(at)))
    }

    /// Adds a program that lies at this path, and returns the name of what runs it, if it is a script.
    fn add_program(&mut self, mut at: PathBuf) -> Option<OsString> {
        self.places.extend(at.parent().map(Path::to_owned));
        for _ in 0..MOST_LINKS {
            // The folder that a link lies in may be behind another one.
            let folder = at.parent()?.canonicalize().ok()?;
            self.add_environment(folder.parent());
            at = folder.join(at.file_name()?);
            match at.read_link() {
                Ok(target) => at = folder.join(target),
                Err(_) => break,
            }
        }
        let real = at.canonicalize().ok().filter(|real| is_executable(real))?;
        self.add_file(&real);
        interpreter(&real)
    }

    fn add_file(&mut self, real: &Path) {
        self.files.push(real.to_owned());
        self.add_libraries(real.ancestors().nth(2));
        // The outermost: it holds those of what a package needs.
        let folders = real.ancestors().collect::<Vec<_>>().into_iter().rev();
        let modules = folders
            .skip(1)
            .find(|folder| folder.ends_with("node_modules"));
        self.folders.extend(modules.map(Path::to_owned));
    }

    /// Adds a virtual environment of Python with what it is made of, or one of conda.
    fn add_environment(&mut self, root: Option<&Path>) {
        let Some(root) = root.filter(|root| !self.folders.iter().any(|known| known == root)) else {
            return;
        };
        if root.join("conda-meta").is_dir() {
            self.folders.push(root.to_owned());
        }
        let Some(configuration) = read_beginning(&root.join("pyvenv.cfg"), LONGEST_CONFIGURATION)
        else {
            return;
        };
        self.folders.push(root.to_owned());
        // A script with a long path finds its interpreter by a line of shell.
        let python = root.join("bin/python").canonicalize();
        if let Ok(python) = python
            && is_executable(&python)
        {
            self.add_file(&python);
        }
        let home = configuration.lines().find_map(|line| {
            let (name, value) = line.split_once('=')?;
            (name.trim() == "home").then(|| PathBuf::from(value.trim()))
        });
        let home = home.and_then(|home| home.canonicalize().ok());
        self.add_libraries(home.as_deref().and_then(Path::parent));
    }

    /// Adds the libraries of a Python that is installed in this folder.
    fn add_libraries(&mut self, root: Option<&Path>) {
        for name in ["lib", "lib64"] {
            let library = root.and_then(|root| root.join(name).canonicalize().ok());
            let Some(library) = library.filter(|library| has_python(library)) else {
                continue;
            };
            if !self.folders.contains(&library) {
                self.folders.push(library);
            }
        }
    }
}

/// By the file that Python itself looks for.
fn has_python(library: &Path) -> bool {
    let Ok(entries) = fs::read_dir(library) else {
        return false;
    };
    entries.flatten().any(|entry| {
        let is_named = entry.file_name().as_bytes().starts_with(b"python3");
        is_named && entry.path().join("os.py").is_file()
    })
}

fn is_executable(path: &Path) -> bool {
    let found = path.metadata();
    found.is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0)
}

/// Returns what a script's first line names; behind `env`, what that looks up.
fn interpreter(script: &Path) -> Option<OsString> {
    let text = read_beginning(script, FIRST_LINE)?;
    let mut words = text.strip_prefix("#!")?.lines().next()?.split_whitespace();
    let first = words.next()?;
    if Path::new(first).file_name()? != "env" {
        return Some(first.into());
    }
    let is_program = |word: &&str| !word.starts_with('-') && !word.contains('=');
    words.find(is_program).map(OsString::from)
}

fn read_beginning(path: &Path, most: u64) -> Option<String> {
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(path)
        .ok()?
        .take(most)
        .read_to_end(&mut bytes)
        .ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        fs::Permissions,
        os::unix::fs::{PermissionsExt, symlink},
    };

    /// A home folder, by its real path.
    struct Home {
        _folder: tempfile::TempDir,
        path: PathBuf,
    }

    impl Home {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().canonicalize().unwrap();
            fs::create_dir(path.join("work")).unwrap();
            Self {
                _folder: folder,
                path,
            }
        }

        fn at(&self, name: &str) -> PathBuf {
            self.path.join(name)
        }

        fn write(&self, name: &str, text: &str, mode: u32) {
            let path = self.at(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }

        fn link(&self, name: &str, target: &str) {
            let path = self.at(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            symlink(target, path).unwrap();
        }

        /// What a program is granted, within the home folder.
        fn granted(&self, program: &str, protected: &str) -> Vec<String> {
            let path = env::join_paths([self.at("bin"), "/usr/bin".into()]).unwrap();
            let program = program.replace("HOME", self.path.to_str().unwrap());
            let found = Installation::find(&program, &self.at("work"), &path);
            let grants = found.grants(&[self.at(protected)]);
            let grants = grants
                .iter()
                .map(|path| path.strip_prefix(&self.path).unwrap());
            grants
                .map(|path| path.to_str().unwrap().to_owned())
                .collect()
        }

        /// A Python as pyenv and uv install it.
        fn python(&self) {
            self.write("versions/3.12/bin/python3.12", "\x7fELF", 0o755);
            self.write("versions/3.12/lib/python3.12/os.py", "", 0o644);
            self.link("versions/3.12/bin/python3", "python3.12");
            self.link("versions/current", "3.12");
        }
    }

    #[test]
    fn a_program_of_a_virtual_environment_has_its_interpreter() {
        let home = Home::new();
        home.python();
        let bin = home.at("versions/current/bin");
        let configuration = format!("version = 3.12\nhome = {}\n", bin.display());
        home.write("venv/pyvenv.cfg", &configuration, 0o644);
        home.link("venv/bin/python", &format!("{}/python3", bin.display()));
        let script = format!("#!{}\n", home.at("venv/bin/python").display());
        home.write("venv/bin/server", &script, 0o755);
        // As pip writes one whose path is long.
        home.write("venv/bin/long", "#!/bin/sh\n'''exec' x\n", 0o755);
        home.link("bin/linked", "../venv/bin/server");
        let all = ["venv", "versions/3.12/lib", "versions/3.12/bin/python3.12"];
        for program in [
            "HOME/venv/bin/server",
            "HOME/venv/bin/python",
            "HOME/venv/bin/long",
            "linked",
            "../bin/linked",
        ] {
            let mut granted = home.granted(program, "none");
            granted.sort();
            let mut all = all;
            all.sort_unstable();
            assert_eq!(granted, all, "{program}");
        }
        // What is protected is not granted with it.
        let granted = home.granted("linked", "venv/data");
        assert!(
            granted.contains(&"venv".to_owned()),
            "what is not there cannot be shown"
        );
        fs::create_dir(home.at("venv/data")).unwrap();
        let granted = home.granted("linked", "venv/data");
        assert!(!granted.contains(&"venv".to_owned()), "{granted:?}");
    }

    #[test]
    fn a_program_of_node_has_its_packages() {
        let home = Home::new();
        home.write("node/bin/own-node", "\x7fELF", 0o755);
        home.write(
            "node/lib/node_modules/npm/bin/npx-cli.js",
            "#!/usr/bin/env -S own-node --x\n",
            0o755,
        );
        home.link("node/bin/npx", "../lib/node_modules/npm/bin/npx-cli.js");
        // Node is not in `PATH`, and lies beside the program.
        let granted = home.granted("HOME/node/bin/npx", "none");
        assert_eq!(granted, ["node/lib/node_modules", "node/bin/own-node"]);
        let found = Installation::find(
            home.at("node/bin/npx").to_str().unwrap(),
            &home.path,
            OsStr::new("/usr/bin"),
        );
        let path = found.path(OsStr::new("/usr/bin"));
        assert!(
            env::split_paths(&path).any(|folder| folder == home.at("node/bin")),
            "{path:?}"
        );
    }

    #[test]
    fn only_programs_and_libraries_are_found() {
        let home = Home::new();
        home.write("secret", "key", 0o600);
        home.write("private/lib/a", "key", 0o600);
        home.write("private/bin/tool", "\x7fELF", 0o755);
        home.link("bin/a", "../secret");
        home.link("bin/b", "../private");
        home.link("bin/c", "c");
        home.write("bin/d", "#!../secret\n", 0o755);
        home.write("bin/e", "#!/no/such\n", 0o755);
        for (program, granted) in [
            ("a", &[][..]),
            ("HOME/bin/a", &[]),
            ("b", &[]),
            ("HOME/bin/c", &[]),
            ("d", &["bin/d"]),
            ("e", &["bin/e"]),
            ("HOME/private/bin/tool", &["private/bin/tool"]),
            ("none", &[]),
            ("sh", &[]),
        ] {
            assert_eq!(home.granted(program, "none"), granted, "{program}");
        }
    }
}

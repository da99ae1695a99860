//! Which files are executed when a program is: its own, behind links, and what a script's first line names.
//!
//! A program of a virtual environment, of pipx, uv or npm is a link or a script, and what runs it lies elsewhere in the home folder. Nothing
//! is granted by this, because another program may have put it there: the folders are named, so that a person can grant them.

use crate::{
    Request,
    children::{NOT_FOUND, NOT_RUN},
};
use rustix::fs::{Mode, OFlags, open};
use std::{
    env,
    ffi::{OsStr, OsString},
    fs::File,
    io::Read,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
};

/// An interpreter can be a script as well.
const MOST_INTERPRETERS: usize = 5;
/// As much of a script's first line as Linux reads.
const FIRST_LINE: u64 = 256;

/// Checks that the command's program exists in this `PATH`, when it starts in the folder `start`, and that the command may read what is
/// executed: the system would only say that something is denied.
///
/// # Errors
/// What is missing, and the exit code.
pub(crate) fn check_program(
    request: &Request,
    start: &Path,
    path: &OsStr,
    readable: &[PathBuf],
) -> Result<(), (String, u8)> {
    let Some(program) = request.arguments.first() else {
        return Ok(());
    };
    let failed = |why: String, code| Err((format!("{program} cannot be run: {why}"), code));
    let files = program_files(program, start, path);
    if files.is_empty() && !program.contains('/') {
        // Not which these are: PATH may be longer than what is shown of an error.
        return failed("it is in none of the folders of PATH".to_owned(), NOT_FOUND);
    }
    let environment =
        look_up(program.as_ref(), start, path).and_then(|program| virtual_environment(&program));
    let is_denied = |file: &PathBuf| !readable.iter().any(|place| file.starts_with(place));
    let (home, mut needed) = (tierbar_nofollow::home(), Vec::<PathBuf>::new());
    for file in environment.into_iter().chain(files).filter(is_denied) {
        let place = installation(&file, home.as_deref());
        if !needed.iter().any(|known| place.starts_with(known)) {
            needed.retain(|known| !known.starts_with(place));
            needed.push(place.to_owned());
        }
    }
    if needed.is_empty() {
        return Ok(());
    }
    let needed: Vec<_> = needed.iter().map(|place| place.to_string_lossy()).collect();
    let needed = needed.join(" and ");
    failed(
        format!("it needs what is in {needed}, which it may not read"),
        NOT_RUN,
    )
}

/// Returns the virtual environment that a program lies in, behind no link: Python knows it by the link that has started it.
fn virtual_environment(program: &Path) -> Option<PathBuf> {
    let folder = program.parent()?.canonicalize().ok()?;
    let mut places = folder.ancestors();
    places
        .find(|place| is_environment(place))
        .map(Path::to_owned)
}

fn is_environment(place: &Path) -> bool {
    place.join("pyvenv.cfg").is_file()
}

/// Returns the folder that a program is installed in, with what it needs beside it, or that folder itself. Never one that has the `home`.
fn installation<'a>(program: &'a Path, home: Option<&Path>) -> &'a Path {
    if is_environment(program) {
        return program;
    }
    let is_wide = |place: &Path| {
        let is_home = home.is_some_and(|home| home.starts_with(place));
        is_home || place.parent().is_none() || place.ends_with(".local")
    };
    let is_installation = |place: &&Path| {
        is_environment(place) || (place.join("bin").is_dir() && place.join("lib").is_dir())
    };
    let folder = program.parent().unwrap_or(program);
    // The stand-ins of pyenv, asdf and mise start what lies beside them.
    let folder = match folder.parent().filter(|_| folder.ends_with("shims")) {
        Some(manager) if !is_wide(manager) => manager,
        _ => folder,
    };
    let mut places = folder.ancestors().take_while(|place| !is_wide(place));
    places.find(is_installation).unwrap_or(folder)
}

/// Returns the real paths of what is executed for a program that is started in the folder `start`, with this `PATH`.
fn program_files(program: &str, start: &Path, path: &OsStr) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut next = Some(OsString::from(program));
    while let Some(name) = next.filter(|_| files.len() < MOST_INTERPRETERS) {
        let found = look_up(&name, start, path).and_then(|at| at.canonicalize().ok());
        let Some(real) = found.filter(|real| is_executable(real)) else {
            break;
        };
        next = interpreter(&real);
        files.push(real);
    }
    files
}

fn look_up(name: &OsStr, start: &Path, path: &OsStr) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Some(start.join(name));
    }
    let mut places = env::split_paths(path).map(|folder| folder.join(name));
    places.find(|at| is_executable(at))
}

fn is_executable(path: &Path) -> bool {
    let found = path.metadata();
    found.is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0)
}

/// Returns what a script's first line names; behind `env`, what that looks up.
fn interpreter(script: &Path) -> Option<OsString> {
    // A pipe would keep it waiting.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = File::from(open(script, flags, Mode::empty()).ok()?);
    let mut bytes = Vec::new();
    file.take(FIRST_LINE).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let mut words = text.strip_prefix("#!")?.lines().next()?.split_whitespace();
    let first = words.next()?;
    if Path::new(first).file_name()? != "env" {
        return Some(first.into());
    }
    let is_program = |word: &&str| !word.starts_with('-') && !word.contains('=');
    words.find(is_program).map(OsString::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        fs::{self, Permissions},
        os::unix::fs::{PermissionsExt, symlink},
    };

    #[test]
    fn links_and_first_lines_lead_to_what_is_executed() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        let write = |name: &str, text: &str, mode: u32| {
            let path = home.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        };
        let link = |name: &str, target: &str| {
            let path = home.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            symlink(target, path).unwrap();
        };
        write("versions/bin/python3.12", "\x7fELF", 0o755);
        link("versions/bin/python3", "python3.12");
        link("venv/bin/python", "../../versions/bin/python3");
        let python = home.join("venv/bin/python");
        write(
            "venv/bin/server",
            &format!("#!{}\n", python.display()),
            0o755,
        );
        write("bin/npx", "#!/usr/bin/env -S own-node --x\n", 0o755);
        write("bin/own-node", "\x7fELF", 0o755);
        link("bin/linked", "../venv/bin/server");
        link("bin/secret", "../secret");
        link("bin/round", "round");
        write("secret", "#!/bin/sh\n", 0o600);
        write("bin/lost", "#!/no/such\n", 0o755);
        let own = format!("#!{}\n", home.join("bin/own").display());
        write("bin/own", &own, 0o755);
        let bin = home.join("bin");
        let server = ["venv/bin/server", "versions/bin/python3.12"];
        for (program, expected) in [
            ("../venv/bin/server", &server[..]),
            ("linked", &server),
            ("npx", &["bin/npx", "bin/own-node"]),
            ("secret", &[]),
            ("round", &[]),
            ("none", &[]),
            ("lost", &["bin/lost"]),
            ("own", &["bin/own"; MOST_INTERPRETERS]),
        ] {
            let found = program_files(program, &bin, bin.as_os_str());
            let expected: Vec<_> = expected.iter().map(|name| home.join(name)).collect();
            assert_eq!(found, expected, "{program}");
        }
    }

    #[test]
    fn all_that_a_program_may_not_read_is_named_at_once() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        let python = home.join("versions/3.12/bin/python3.12");
        let node = home.join("node/bin/node");
        for (name, first_line) in [
            ("versions/3.12/bin/python3.12", String::new()),
            ("versions/3.12/lib/os.py", String::new()),
            ("venv/pyvenv.cfg", String::new()),
            ("venv/bin/server", format!("#!{}", python.display())),
            ("manager/shims/server", format!("#!{}", python.display())),
            ("tool/run", String::new()),
            ("node/bin/node", String::new()),
            ("node/lib/node_modules/npm/lib/a.js", String::new()),
            (
                "node/lib/node_modules/npm/bin/npx.js",
                format!("#!{}", node.display()),
            ),
        ] {
            let path = home.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, first_line).unwrap();
            fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
        }
        symlink(&python, home.join("venv/bin/python")).unwrap();
        symlink(
            "../lib/node_modules/npm/bin/npx.js",
            home.join("node/bin/npx"),
        )
        .unwrap();
        let check = |program: &str, readable: &[PathBuf]| {
            let request = Request {
                arguments: vec![program.to_owned()],
                ..Request::default()
            };
            check_program(&request, &home, OsStr::new(""), readable)
        };
        for (program, needed) in [
            ("venv/bin/server", &["venv", "versions/3.12"][..]),
            ("venv/bin/python", &["venv", "versions/3.12"]),
            ("manager/shims/server", &["manager", "versions/3.12"]),
            ("node/bin/npx", &["node"]),
            ("tool/run", &["tool"]),
        ] {
            let needed: Vec<_> = needed.iter().map(|name| home.join(name)).collect();
            let names: Vec<_> = needed.iter().map(|place| place.to_str().unwrap()).collect();
            let names = names.join(" and ");
            let why = format!(
                "{program} cannot be run: it needs what is in {names}, which it may not read"
            );
            assert_eq!(check(program, &[]), Err((why, NOT_RUN)));
            assert_eq!(check(program, &needed), Ok(()), "{program}");
        }
        // A home that looks like an installation is not named.
        for folder in ["bin", "lib"] {
            fs::create_dir(home.join(folder)).unwrap();
        }
        let run = home.join("tool/run");
        assert_eq!(installation(&run, Some(&home)), home.join("tool"));
        assert_eq!(installation(&run, None), home);
    }
}

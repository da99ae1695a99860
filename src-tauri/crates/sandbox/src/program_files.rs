//! Which files are executed when a program is: its own, behind links, and what a script's first line names.
//!
//! A program of a virtual environment, of pipx, uv or npm is a link or a script, and what runs it lies elsewhere in the home folder. Nothing
//! is granted by this: what lies there may have been put there by another program.

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

/// Checks that the command's program exists in this `PATH`, and that the command may read what is executed: the system would only say
/// that something is denied.
///
/// # Errors
/// What is missing, and the exit code.
pub(crate) fn check_program(
    request: &Request,
    path: &OsStr,
    readable: &[PathBuf],
) -> Result<(), (String, u8)> {
    let Some(program) = request.arguments.first() else {
        return Ok(());
    };
    let failed = |why: String, code| Err((format!("{program} cannot be run: {why}"), code));
    let files = program_files(program, &request.folder, path);
    if files.is_empty() && !program.contains('/') {
        // Not which these are: PATH may be longer than what is shown of an error.
        return failed("it is in none of the folders of PATH".to_owned(), NOT_FOUND);
    }
    let is_denied = |file: &&PathBuf| !readable.iter().any(|place| file.starts_with(place));
    match files.iter().find(is_denied) {
        None => Ok(()),
        Some(denied) => {
            let why = format!("it needs {}, which it may not read", denied.display());
            failed(why, NOT_RUN)
        }
    }
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
}

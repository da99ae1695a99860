//! What the guard and the launcher have in common: their host, their children, and becoming another program.

use rustix::{
    io::Errno,
    process::{Pid, WaitOptions, WaitStatus, wait},
};
use std::{io, process::Child};

/// The exit codes of shells.
pub(crate) const NOT_FOUND: u8 = 127;
pub(crate) const NOT_RUN: u8 = 126;

/// Waits until the host has closed this process's stdin, or is gone.
pub(crate) fn wait_for_host() {
    let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
}

/// Waits for every child, adopted ones too, so that none stays a zombie. Passes on how `program` has ended.
pub(crate) fn reap(program: Pid, ended: impl Fn(WaitStatus)) {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == program => ended(status),
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => break,
        }
    }
}

/// Returns the number of a child, which may lead a process group.
pub(crate) fn pid_of(child: &Child) -> io::Result<Pid> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    pid.ok_or_else(|| io::Error::other("the program has no number"))
}

/// Returns the exit code of a process that could not become a program.
pub(crate) fn exit_code(error: &io::Error) -> u8 {
    match error.kind() {
        io::ErrorKind::NotFound => NOT_FOUND,
        _ => NOT_RUN,
    }
}

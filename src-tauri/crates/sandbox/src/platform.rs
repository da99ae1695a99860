//! What enforces a sandbox, and how a command's processes are found and ended.

#![expect(
    unsafe_code,
    reason = "kernels are called directly where no crate has the call"
)]

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(target_os = "macos")]
use macos as system;

pub(crate) use system::{
    PACKAGES, UTF_8, adopt, developer_folder, die_with_parent, enforcement, is_memory_short,
    kill_adopted, memory_bytes, open_up, processes, restrict, serve, system_folders,
    temporary_folder,
};

use crate::Limits;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, setrlimit};

/// A process that is known again although numbers are reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Process {
    pub(crate) pid: Pid,
    /// In a unit of the system's.
    started: u64,
}

/// What a command has started.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    pub(crate) alive: Vec<Process>,
    /// Those that have ended and were not waited for, which take a number; on Linux alone, where root has no limit of the kernel's.
    pub(crate) zombies: u64,
    /// Of those that are alive; on Linux alone.
    pub(crate) threads: u64,
}

/// A background process ignores some signals, and would pass that on to a program that is to end by one of them.
pub(crate) fn heed_signals() {
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGQUIT, libc::SIGHUP] {
        // SAFETY: the default takes no handler of ours.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Lowers the limits that both systems have. `users_processes`: how many the user has now, which count as well.
fn set_limits(limits: &Limits, users_processes: u64) -> Result<(), String> {
    let each = [
        (Resource::Cpu, limits.cpu_seconds),
        (Resource::Fsize, limits.file_bytes),
        (Resource::Nofile, limits.open_files),
        (
            Resource::Nproc,
            users_processes.saturating_add(limits.processes),
        ),
        // A core dump would be a file of the command's memory.
        (Resource::Core, 0),
    ];
    for (resource, most) in each {
        set_limit(resource, most)?;
    }
    Ok(())
}

fn set_limit(resource: Resource, most: u64) -> Result<(), String> {
    // A limit is never raised.
    let most = getrlimit(resource)
        .maximum
        .map_or(most, |now| now.min(most));
    let limit = Rlimit {
        current: Some(most),
        maximum: Some(most),
    };
    setrlimit(resource, limit).map_err(|error| format!("{resource:?} cannot be limited: {error}"))
}

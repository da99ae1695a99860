//! Linux: Landlock for files, ports and signals, seccomp for system calls, and resource limits.

mod connect;
mod files;
mod filter;
mod modes;
mod tree;

pub(crate) use modes::serve;
pub(crate) use tree::{is_memory_short, kill_adopted, memory_bytes, processes};

use super::{set_limit, set_limits};
use crate::{Request, policy::GrantedFiles};
use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags, chmod, openat2},
    net::{Shutdown, shutdown},
    process::{
        Resource, Signal, getpid, set_child_subreaper, set_parent_process_death_signal, setsid,
    },
    thread::{
        CapabilitySet, CapabilitySets, disable_transparent_huge_pages, set_capabilities,
        set_no_new_privs,
    },
};
use std::{
    os::fd::AsRawFd,
    path::{Path, PathBuf},
};

/// How many processes and threads the user's other programs may begin while a command runs.
const OTHERS_GROWTH: u64 = 4_096;
/// The oldest Landlock that restricts truncation.
const OLDEST: i32 = 3;
/// The first one with ports.
const WITH_PORTS: i32 = 4;
/// The first one that keeps signals inside.
const WITH_SIGNALS: i32 = 6;

/// Programs, libraries and what they need to start.
const SYSTEM: [&str; 9] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/opt",
    "/nix/store",
    "/gnu/store",
];

/// Adopts orphaned descendants, so that they can be found and killed.
pub(crate) fn adopt() {
    // Without it only the process group would be found.
    let _ = set_child_subreaper(Some(getpid()));
}

/// Makes this process die with the thread that started it.
pub(crate) fn die_with_parent() {
    // Without it, the watch of the launcher's stdin ends the command.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
}

/// Where programs lie that the system's own packages do not bring.
pub(crate) const PACKAGES: &[&str] = &["/usr/local/bin"];

/// A part of the C library.
pub(crate) const UTF_8: &str = "C.UTF-8";

/// Linux has its compilers where its other programs are.
pub(crate) fn developer_folder() -> Option<PathBuf> {
    None
}

pub(crate) fn system_folders() -> Vec<PathBuf> {
    SYSTEM.map(PathBuf::from).into()
}

/// Gives this user all rights to a folder. No link in its path is followed.
pub(crate) fn open_up(folder: &Path) -> rustix::io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = openat2(CWD, folder, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
    // By its number: a mode cannot be changed by what was opened as a path.
    chmod(format!("/proc/self/fd/{}", folder.as_raw_fd()), Mode::RWXU)
}

/// The system's, but where that lies in memory, in which files are counted by no limit, one on disk.
pub(crate) fn temporary_folder() -> PathBuf {
    let usual = std::env::temp_dir();
    let on_disk = PathBuf::from("/var/tmp");
    let is_in_memory = |path: &Path| {
        let kind = rustix::fs::statfs(path).map(|system| system.f_type);
        kind.is_ok_and(|kind| kind == libc::TMPFS_MAGIC)
    };
    if is_in_memory(&usual) && on_disk.is_dir() && !is_in_memory(&on_disk) {
        on_disk
    } else {
        usual
    }
}

/// What enforces a sandbox, or why nothing does.
pub(crate) fn enforcement() -> Result<String, String> {
    let version = files::version();
    if version < OLDEST {
        let what = match version {
            ..=0 => {
                "this kernel has no Landlock, or it is not among its security modules".to_owned()
            }
            older => format!("this kernel has Landlock {older}"),
        };
        return Err(format!(
            "{what}; Linux 6.2 or newer with Landlock {OLDEST} is needed"
        ));
    }
    if !filter::is_available() {
        return Err("this kernel has no seccomp filters".to_owned());
    }
    Ok(format!("Landlock {version} and seccomp"))
}

/// Restricts this process for good, and returns the command to become. Stdin is the way to the launcher, until it is nothing, or what
/// the launcher passes on to a command that speaks with the host.
pub(crate) fn restrict(
    request: &Request,
    granted: &GrantedFiles,
    home: &Path,
    proxy: Option<u16>,
) -> Result<Vec<String>, String> {
    let policy = &request.policy;
    let version = files::version();
    if proxy.is_some() && version < WITH_PORTS {
        return Err("commands can have the network from Linux 6.7 on".to_owned());
    }
    let nothing = std::fs::File::open("/dev/null").map_err(|error| error.to_string())?;
    close_others()?;
    let failed = |what: &str, error: rustix::io::Errno| format!("{what}: {error}");
    setsid().map_err(|error| failed("no session of its own", error))?;
    // This limit counts what else the user runs, so it leaves room for what that begins meanwhile: it keeps the machine alive until the
    // launcher, which counts the command's alone, ends it. It does not hold root.
    let others = tree::processes_of_user().saturating_add(OTHERS_GROWTH);
    set_limits(&policy.limits, others)?;
    // What a process has reserved and never written does not count, so that large reservations work.
    set_limit(Resource::Data, policy.limits.memory_bytes)?;
    // A huge page stays whole for as long as one of its small pages is used, and readings find that one alone. Programs that it starts
    // have none either, and the filter keeps it so.
    disable_transparent_huge_pages(true)
        .map_err(|error| failed("huge pages cannot be turned off", error))?;
    set_no_new_privs(true).map_err(|error| failed("rights can still be gained", error))?;
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, none).map_err(|error| failed("rights cannot be dropped", error))?;
    files::restrict(granted, home, version)?;
    let rules = filter::Rules {
        network: proxy.is_some(),
        signals_stay_inside: version >= WITH_SIGNALS,
    };
    let listener = filter::install(rules)?;
    let stdin = rustix::stdio::stdin();
    modes::hand_over(&listener, stdin)?;
    if request.speaks {
        // It reads from the launcher and says nothing to it.
        shutdown(stdin, Shutdown::Write).map_err(|error| failed("no stdin", error))?;
    } else {
        rustix::stdio::dup2_stdin(&nothing).map_err(|error| failed("no stdin", error))?;
    }
    Ok(request.arguments.clone())
}

/// Has the command inherit no file but the standard streams.
fn close_others() -> Result<(), String> {
    // SAFETY: the call takes numbers alone. It marks descriptors to be closed by the exec that follows.
    let status = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            3,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
    if status == 0 {
        Ok(())
    } else {
        let error = std::io::Error::last_os_error();
        Err(format!("open files cannot be closed: {error}"))
    }
}

//! macOS: Seatbelt, by the system's own `sandbox-exec`, and resource limits.

use super::{Process, Processes, set_limits};
use crate::{
    Policy, Request,
    policy::GrantedFiles,
    profile,
    seatbelt::{PROGRAMS, xcode_of},
};
use rustix::{
    fs::{AtFlags, CWD, Mode, chmodat},
    process::{Pid, getpid, getuid, setsid},
    stdio::dup2_stdin,
};
use std::{
    collections::{BTreeMap, HashSet},
    ffi::c_void,
    fs::File,
    io, mem,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    sync::atomic::AtomicU64,
};
use tierbar_nofollow::OpenFile;

/// By its whole path, so that no other program of this name is run.
const SANDBOX_EXEC: &str = "/usr/bin/sandbox-exec";

/// macOS has no subreaper; processes that were seen are known again.
pub(crate) fn adopt() {}

/// The launcher watches its stdin instead.
pub(crate) fn die_with_parent() {}

/// macOS adopts no orphans: a program that leaves its group outlives the guard.
pub(crate) fn kill_adopted() {}

/// Where Homebrew, installers and MacPorts put programs.
pub(crate) const PACKAGES: &[&str] = &["/opt/homebrew/bin", "/usr/local/bin", "/opt/local/bin"];

/// Every Mac has it.
pub(crate) const UTF_8: &str = "en_US.UTF-8";

/// Where Xcode or the Command Line Tools really are, as `xcode-select -p` prints it or behind that.
pub(crate) fn developer_folder() -> Option<PathBuf> {
    let chosen = std::fs::read_link("/var/db/xcode_select_link").ok();
    let usual = [
        "/Applications/Xcode.app/Contents/Developer",
        "/Library/Developer/CommandLineTools",
    ];
    let mut folders = chosen.into_iter().chain(usual.map(PathBuf::from));
    let found = folders.find(|folder| folder.join("usr/bin").is_dir())?;
    found.canonicalize().ok()
}

pub(crate) fn system_folders() -> Vec<PathBuf> {
    let developer = developer_folder();
    let xcode = developer.as_deref().and_then(xcode_of);
    let places = PROGRAMS.iter().map(Path::new).chain(xcode);
    places.map(Path::to_owned).collect()
}

/// What enforces a sandbox, or why nothing does.
pub(crate) fn enforcement() -> Result<String, String> {
    if !Path::new(SANDBOX_EXEC).is_file() {
        return Err(format!("this system has no {SANDBOX_EXEC}"));
    }
    if getuid().is_root() {
        return Err("macOS does not limit the processes of root".to_owned());
    }
    Ok("Seatbelt".to_owned())
}

/// Limits this process, and returns the command to become, which restricts itself.
pub(crate) fn restrict(
    request: &Request,
    granted: &GrantedFiles,
    home: &Path,
    proxy: Option<u16>,
) -> Result<Vec<String>, String> {
    let policy = &request.policy;
    // What speaks with the host reads what the launcher passes on.
    if !request.speaks {
        let nothing = File::open("/dev/null").map_err(|error| error.to_string())?;
        dup2_stdin(&nothing).map_err(|error| format!("no stdin: {error}"))?;
    }
    setsid().map_err(|error| format!("no session of its own: {error}"))?;
    set_limits(&policy.limits, all().len() as u64)?;
    // Seatbelt compares the real path of what is opened, such as one in /private/tmp.
    let real = |granted: &[OpenFile]| -> io::Result<Vec<PathBuf>> {
        granted.iter().map(OpenFile::real_path).collect()
    };
    let unknown = |error: io::Error| error.to_string();
    let protected = policy.protected.iter();
    let policy = Policy {
        read: real(&granted.read).map_err(unknown)?,
        write: real(&granted.write).map_err(unknown)?,
        protected: protected
            .filter_map(|path| path.canonicalize().ok())
            .collect(),
        ..policy.clone()
    };
    let profile = profile(&policy, home, developer_folder().as_deref(), proxy)?;
    let mut command = vec![SANDBOX_EXEC.to_owned()];
    for parameter in profile.parameters {
        command.extend(["-D".to_owned(), parameter]);
    }
    command.extend(["-p".to_owned(), profile.text]);
    command.extend_from_slice(&request.arguments);
    Ok(command)
}

/// Gives this user all rights to a folder, and not to one that a link leads to.
pub(crate) fn open_up(folder: &Path) -> rustix::io::Result<()> {
    chmodat(CWD, folder, Mode::RWXU, AtFlags::SYMLINK_NOFOLLOW)
}

/// On disk.
pub(crate) fn temporary_folder() -> PathBuf {
    std::env::temp_dir()
}

/// Seatbelt restricts modes, times and connections itself, and a process's footprint has what it shares.
pub(crate) fn serve(
    _command: &UnixStream,
    _places: &[PathBuf],
    _shared: &AtomicU64,
    _most: u64,
    _proxy: Option<u16>,
) {
}

/// The command's process group, and the descendants of the launcher and of the processes seen before.
pub(crate) fn processes(command: Pid, seen: &HashSet<Process>) -> Processes {
    let mut children: BTreeMap<i32, Vec<Process>> = BTreeMap::new();
    let mut found = HashSet::new();
    for (process, info) in all().into_iter().filter_map(info) {
        if info.pbi_status == libc::SZOMB {
            continue;
        }
        let parent = i32::try_from(info.pbi_ppid).unwrap_or(0);
        children.entry(parent).or_default().push(process);
        let in_group = i32::try_from(info.pbi_pgid) == Ok(command.as_raw_nonzero().get());
        if in_group || seen.contains(&process) {
            found.insert(process);
        }
    }
    let numbers = found.iter().map(|process| process.pid);
    let mut parents: Vec<Pid> = numbers.chain([getpid()]).collect();
    while let Some(parent) = parents.pop() {
        for process in children
            .remove(&parent.as_raw_nonzero().get())
            .unwrap_or_default()
        {
            parents.push(process.pid);
            found.insert(process);
        }
    }
    Processes {
        alive: found.into_iter().collect(),
        ..Processes::default()
    }
}

/// The memory that these processes hold, as Activity Monitor counts it.
pub(crate) fn memory_bytes(processes: &[Process]) -> u64 {
    processes
        .iter()
        .filter_map(|process| footprint(process.pid))
        .sum()
}

/// macOS does not count what is available; the memory guard of the host watches its pressure.
pub(crate) fn is_memory_short() -> bool {
    false
}

fn footprint(pid: Pid) -> Option<u64> {
    // SAFETY: the struct is plain integers, for which all zeroes is a value.
    let mut usage: libc::rusage_info_v2 = unsafe { mem::zeroed() };
    // SAFETY: flavor V2 writes exactly one `rusage_info_v2` at the address; despite its type the last parameter
    // is that address, as Apple's libproc passes it on.
    let status = unsafe {
        libc::proc_pid_rusage(
            pid.as_raw_nonzero().get(),
            libc::RUSAGE_INFO_V2,
            (&raw mut usage).cast::<libc::rusage_info_t>(),
        )
    };
    (status == 0).then_some(usage.ri_phys_footprint)
}

/// The numbers of all processes.
fn all() -> Vec<i32> {
    let mut pids = vec![0 as libc::pid_t; 1024];
    loop {
        let size = mem::size_of_val(pids.as_slice()) as libc::c_int;
        // SAFETY: the call writes at most `size` bytes of process numbers at the address.
        let found = unsafe { libc::proc_listallpids(pids.as_mut_ptr().cast::<c_void>(), size) };
        let found = usize::try_from(found).unwrap_or(0);
        // A full buffer may have left some out.
        if found < pids.len() {
            pids.truncate(found);
            return pids;
        }
        pids.resize(pids.len() * 2, 0);
    }
}

fn info(pid: i32) -> Option<(Process, libc::proc_bsdinfo)> {
    // SAFETY: the struct is plain integers, for which all zeroes is a value.
    let mut info: libc::proc_bsdinfo = unsafe { mem::zeroed() };
    let size = mem::size_of_val(&info) as libc::c_int;
    // SAFETY: the flavor writes one `proc_bsdinfo` at the address, which outlives the call, and `size` is its size.
    let written = unsafe {
        libc::proc_pidinfo(
            pid,
            libc::PROC_PIDTBSDINFO,
            0,
            (&raw mut info).cast::<c_void>(),
            size,
        )
    };
    let started = info
        .pbi_start_tvsec
        .saturating_mul(1_000_000)
        .saturating_add(info.pbi_start_tvusec);
    let process = Process {
        pid: Pid::from_raw(pid)?,
        started,
    };
    (written == size).then_some((process, info))
}

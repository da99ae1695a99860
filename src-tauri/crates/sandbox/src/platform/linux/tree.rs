//! A command's processes, found by their parents. Orphans are adopted by the launcher, so none leaves the tree.

use super::super::{Process, Processes};
use rustix::process::{Pid, Signal, getpid, getuid, kill_process};
use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    fs,
    os::unix::fs::MetadataExt,
    path::PathBuf,
};

/// With fewer open files, what waits in them is no more than a fraction of a command's memory.
const FEW_FILES: u64 = 1_024;
/// What waits in a socket at most where the kernel does not say.
const SOCKET_BYTES: u64 = 208 * 1024;
const PIPE_BYTES: u64 = 64 * 1024;

/// What `/proc/N/stat` tells.
struct Stat {
    process: Process,
    parent: i32,
    threads: u64,
    is_zombie: bool,
}

/// Kills all descendants of this process, in any group.
pub(crate) fn kill_adopted() {
    for process in processes(getpid(), &HashSet::new()).alive {
        let _ = kill_process(process.pid, Signal::KILL);
    }
}

/// All descendants of this process. The command and those seen before are among them.
pub(crate) fn processes(_command: Pid, _seen: &HashSet<Process>) -> Processes {
    let mut children: BTreeMap<i32, Vec<Stat>> = BTreeMap::new();
    for stat in process_ids().filter_map(stat) {
        children.entry(stat.parent).or_default().push(stat);
    }
    let mut parents = vec![getpid().as_raw_nonzero().get()];
    let mut found = Processes::default();
    while let Some(parent) = parents.pop() {
        for stat in children.remove(&parent).unwrap_or_default() {
            parents.push(stat.process.pid.as_raw_nonzero().get());
            if stat.is_zombie {
                found.zombies += 1;
            } else {
                found.threads += stat.threads;
                found.alive.push(stat.process);
            }
        }
    }
    found
}

/// The memory that these processes hold, swapped pages and page tables included, but for shared memory, which is counted when it is
/// mapped.
pub(crate) fn memory_bytes(processes: &[Process]) -> u64 {
    let living = processes.iter().filter_map(|process| {
        let number = process.pid.as_raw_nonzero();
        living_thread(PathBuf::from(format!("/proc/{number}")))
    });
    let (folders, statuses): (Vec<PathBuf>, Vec<String>) = living.unzip();
    let held = statuses.iter().map(|status| held_bytes(status));
    held.sum::<u64>().saturating_add(buffered_bytes(&folders))
}

/// The folder of a process, with its status. If its first thread has ended, that knows neither memory nor files, and those of another
/// thread are returned.
fn living_thread(process: PathBuf) -> Option<(PathBuf, String)> {
    let read = |folder: PathBuf| {
        let status = fs::read_to_string(folder.join("status")).ok()?;
        let has_memory = status.lines().any(|line| line.starts_with("RssAnon:"));
        has_memory.then_some((folder, status))
    };
    let threads = process.join("task");
    read(process).or_else(|| {
        let mut threads = fs::read_dir(threads).ok()?;
        threads.find_map(|thread| read(thread.ok()?.path()))
    })
}

/// Adds up what is not the content of files.
fn held_bytes(status: &str) -> u64 {
    let kibibytes = status.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        let counts = ["RssAnon", "VmSwap", "VmPTE", "HugetlbPages"].contains(&name);
        let value = value.trim().strip_suffix(" kB").filter(|_| counts)?;
        value.parse::<u64>().ok()
    });
    kibibytes.sum::<u64>().saturating_mul(1024)
}

/// The most that can wait in the sockets and pipes of these processes, which belongs to none of them. Few files are not looked at.
fn buffered_bytes(folders: &[PathBuf]) -> u64 {
    let folders = folders.iter().map(|folder| folder.join("fd"));
    // The size of such a folder is how many files it has, from Linux 6.2 on.
    let files = folders
        .clone()
        .filter_map(|folder| fs::metadata(folder).ok());
    if files.map(|folder| folder.len()).sum::<u64>() < FEW_FILES {
        return 0;
    }
    let entries = folders.filter_map(|folder| fs::read_dir(folder).ok());
    let links = entries
        .flatten()
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    // What several have open holds it once.
    let different: BTreeSet<PathBuf> = links.collect();
    let socket = fs::read_to_string("/proc/sys/net/core/wmem_default");
    let socket = socket.ok().and_then(|bytes| bytes.trim().parse().ok());
    let each = different.iter().map(|link| match link.to_str() {
        Some(link) if link.starts_with("socket:") => socket.unwrap_or(SOCKET_BYTES),
        Some(link) if link.starts_with("pipe:") => PIPE_BYTES,
        _ => 0,
    });
    each.fold(0, u64::saturating_add)
}

/// Whether the machine has so little memory left that a command ends, whatever holds it: the kernel keeps records for a process, such
/// as those of its mappings and locks, that no reading counts.
pub(crate) fn is_memory_short() -> bool {
    fs::read_to_string("/proc/meminfo").is_ok_and(|text| is_short(&text))
}

fn is_short(meminfo: &str) -> bool {
    let kibibytes = |name: &str| {
        let mut lines = meminfo.lines();
        let value = lines.find_map(|line| line.strip_prefix(name))?;
        value.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    };
    let (total, available) = (kibibytes("MemTotal:"), kibibytes("MemAvailable:"));
    matches!((total, available), (Some(total), Some(available)) if available < total / 32)
}

/// How many threads this user has, which the limit of processes counts.
pub(super) fn processes_of_user() -> u64 {
    let user = getuid().as_raw();
    let threads = process_ids().filter_map(|number| {
        let tasks = format!("/proc/{number}/task");
        let own = fs::metadata(&tasks).ok()?.uid() == user;
        own.then(|| fs::read_dir(tasks).map_or(1, Iterator::count) as u64)
    });
    threads.sum()
}

fn process_ids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

fn stat(number: u32) -> Option<Stat> {
    parse(&fs::read_to_string(format!("/proc/{number}/stat")).ok()?)
}

/// The name, in parentheses, may contain anything, so the fields are counted from its end.
fn parse(text: &str) -> Option<Stat> {
    let pid = text.split(' ').next()?.parse().ok()?;
    let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    // Fields 20 and 22; the state is field 3.
    let threads = fields.nth(15)?.parse().ok()?;
    let started = fields.nth(1)?.parse().ok()?;
    Some(Stat {
        process: Process {
            pid: Pid::from_raw(pid)?,
            started,
        },
        parent,
        threads,
        // The first thread can end before the others.
        is_zombie: matches!(state, "Z" | "X") && threads <= 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_pose_as_fields() {
        let text = "42 (a) R 1 1 (b) c) S 7 42 42 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 998877 1 2";
        let stat = parse(text).unwrap();
        assert_eq!(stat.process.pid.as_raw_nonzero().get(), 42);
        assert_eq!((stat.parent, stat.process.started), (7, 998_877));
        assert_eq!((stat.threads, stat.is_zombie), (1, false));
        assert!(parse("42 (x").is_none());
    }

    #[test]
    fn a_process_lives_for_as_long_as_one_of_its_threads() {
        let is_zombie = |state: &str, threads: u64| {
            let text = format!(
                "42 (a) {state} 7 42 42 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 {threads} 0 998877 1 2"
            );
            parse(&text).unwrap().is_zombie
        };
        assert!(is_zombie("Z", 1));
        assert!(!is_zombie("Z", 2));
        assert!(!is_zombie("S", 1));
    }

    #[test]
    fn pages_of_files_do_not_count_as_memory() {
        let status = "Name:\tRssAnon: 9 kB\nRssAnon:\t  10 kB\nRssFile:\t 500 kB\nVmPTE:\t 20 kB\nVmSwap:\t 3 kB\nHugetlbPages:\t 0 kB\n";
        assert_eq!(held_bytes(status), 33 * 1024);
    }

    #[test]
    fn memory_is_short_below_a_part_of_the_machines() {
        let text = |available: u64| {
            format!("MemTotal:  3200 kB\nMemFree: 1 kB\nMemAvailable:  {available} kB\n")
        };
        assert!(is_short(&text(99)));
        assert!(!is_short(&text(100)));
        assert!(!is_short("MemTotal: 3200 kB\n"));
    }

    #[test]
    fn this_process_is_counted() {
        assert!(processes_of_user() >= 1);
    }
}

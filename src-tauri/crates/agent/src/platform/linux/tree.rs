//! A command's processes, found by their parents. Orphans are adopted by the launcher, so none leaves the tree.

use super::super::Process;
use rustix::process::{Pid, getpid, getuid};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::MetadataExt,
};

/// What `/proc/N/stat` tells.
struct Stat {
    process: Process,
    parent: i32,
    threads: u64,
    is_zombie: bool,
}

/// All descendants of this process that are alive. The command and those seen before are among them.
pub(crate) fn processes(_command: Pid, _seen: &BTreeSet<Process>) -> Vec<Process> {
    let mut children: BTreeMap<i32, Vec<Stat>> = BTreeMap::new();
    for stat in all().filter_map(stat) {
        children.entry(stat.parent).or_default().push(stat);
    }
    let mut parents = vec![getpid().as_raw_nonzero().get()];
    let mut found = Vec::new();
    while let Some(parent) = parents.pop() {
        for stat in children.remove(&parent).unwrap_or_default() {
            parents.push(stat.process.pid.as_raw_nonzero().get());
            if !stat.is_zombie {
                found.push(stat.process);
            }
        }
    }
    found
}

/// How many processes and threads are below this process, zombies included, as the kernel counts them.
pub(super) fn tasks() -> u64 {
    let stats: BTreeMap<i32, Stat> = all()
        .filter_map(stat)
        .map(|stat| (stat.process.pid.as_raw_nonzero().get(), stat))
        .collect();
    let own = getpid().as_raw_nonzero().get();
    let below = stats
        .iter()
        .filter(|(pid, stat)| **pid != own && is_below(own, stat, &stats, find));
    below.map(|(_, stat)| stat.threads.max(1)).sum()
}

/// Follows the parents of a process. What began or ended while all were read is read again, so that neither the orphans of another
/// command count nor what this one begins behind the reader is missed. If that has no end, a process counts if it is younger than this
/// one, which adopts its own.
fn is_below(
    own: i32,
    stat: &Stat,
    stats: &BTreeMap<i32, Stat>,
    find: impl Fn(i32) -> Option<Stat>,
) -> bool {
    const READ_AGAIN: usize = 16;
    let read_again = |process: Process| {
        find(process.pid.as_raw_nonzero().get()).filter(|now| now.process == process)
    };
    let since = stats.get(&own).map_or(0, |own| own.process.started);
    let (mut top, mut parent, mut again) = (stat.process, stat.parent, 0);
    // Numbers that were reused while they were read could make a circle.
    for _ in 0..=stats.len() + 2 * READ_AGAIN {
        // The first processes have the parent 0.
        if parent == 0 {
            return false;
        }
        if parent == own {
            return true;
        }
        if let Some(above) = stats.get(&parent) {
            (top, parent) = (above.process, above.parent);
            continue;
        }
        if again == READ_AGAIN {
            return stat.process.started >= since;
        }
        again += 1;
        if let Some(above) = find(parent) {
            (top, parent) = (above.process, above.parent);
        } else if let Some(now) = read_again(top) {
            // Its parent has ended, and it has another one.
            parent = now.parent;
        } else if let Some(now) = read_again(stat.process) {
            (top, parent) = (stat.process, now.parent);
        } else {
            return false;
        }
    }
    true
}

/// The memory that these processes hold, swapped pages included. Memory that two share counts twice.
pub(crate) fn memory_bytes(processes: &[Process]) -> u64 {
    let held = processes.iter().filter_map(|process| {
        let number = process.pid.as_raw_nonzero();
        Some(held_bytes(
            &fs::read_to_string(format!("/proc/{number}/status")).ok()?,
        ))
    });
    held.sum()
}

/// Adds up what is not the content of files.
fn held_bytes(status: &str) -> u64 {
    let kibibytes = status.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        let counts = ["RssAnon", "RssShmem", "VmSwap"].contains(&name);
        let value = value.trim().strip_suffix(" kB").filter(|_| counts)?;
        value.parse::<u64>().ok()
    });
    kibibytes.sum::<u64>().saturating_mul(1024)
}

/// How many threads this user has, which the limit of processes counts.
pub(super) fn processes_of_user() -> u64 {
    let user = getuid().as_raw();
    let threads = all().filter_map(|number| {
        let tasks = format!("/proc/{number}/task");
        let own = fs::metadata(&tasks).ok()?.uid() == user;
        own.then(|| fs::read_dir(tasks).map_or(1, Iterator::count) as u64)
    });
    threads.sum()
}

fn all() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

fn find(number: i32) -> Option<Stat> {
    stat(u32::try_from(number).ok()?)
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
        is_zombie: matches!(state, "Z" | "X"),
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
    fn an_orphan_is_below_whoever_adopted_it() {
        let made = |pid: i32, parent: i32| Stat {
            process: Process {
                pid: Pid::from_raw(pid).unwrap(),
                started: 100,
            },
            parent,
            threads: 1,
            is_zombie: false,
        };
        // 10 is the launcher; 30's parent has ended, and 40 is the child of 30.
        let list = [
            made(1, 0),
            made(10, 1),
            made(20, 10),
            made(30, 99),
            made(40, 30),
        ];
        let pid = |stat: &Stat| stat.process.pid.as_raw_nonzero().get();
        let stats: BTreeMap<i32, Stat> = list.into_iter().map(|stat| (pid(&stat), stat)).collect();
        // 99 has ended, and what was below it has this parent now; 98 began later, below 1.
        let adopted_by = |parent: Option<i32>| {
            let find = |pid: i32| match pid {
                30 => Some(made(30, parent?)),
                40 => Some(made(40, parent.map_or(1, |_| 30))),
                98 => Some(made(98, 1)),
                _ => None,
            };
            [20, 30, 40].map(|pid| is_below(10, &stats[&pid], &stats, find))
        };
        assert_eq!(adopted_by(Some(10)), [true, true, true]);
        assert_eq!(adopted_by(Some(1)), [true, false, false]);
        assert_eq!(adopted_by(Some(98)), [true, false, false]);
        // It has ended.
        assert_eq!(adopted_by(None), [true, false, false]);
        // Each new parent has ended: what has no end counts by its age.
        assert_eq!(adopted_by(Some(97)), [true, true, true]);
    }

    #[test]
    fn pages_of_files_do_not_count_as_memory() {
        let status = "Name:\tRssAnon: 9 kB\nRssAnon:\t  10 kB\nRssFile:\t 500 kB\nRssShmem:\t 20 kB\nVmSwap:\t 3 kB\n";
        assert_eq!(held_bytes(status), 33 * 1024);
    }

    #[test]
    fn this_process_is_counted() {
        assert!(processes_of_user() >= 1);
    }
}

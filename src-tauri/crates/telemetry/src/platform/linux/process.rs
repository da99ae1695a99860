//! One process, by its files under `/proc`.

use super::number;
use std::{fs, io, path::Path};

pub fn footprint(pid: u32) -> Option<u64> {
    given_back(&fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?)
}

/// Returns the parts of a footprint by the kernel's counters: without a walk over the pages, and with shared memory counted
/// in full.
pub(crate) fn held(pid: u32) -> Option<u64> {
    counted(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?)
}

pub fn cpu_ms(pid: u32) -> Option<u64> {
    let ticks = stat_of(pid)?.ticks;
    Some(ticks.saturating_mul(1000) / rustix::param::clock_ticks_per_second())
}

/// Returns when the process started, in ticks since the system did.
pub(crate) fn started(pid: u32) -> Option<u64> {
    Some(stat_of(pid)?.started)
}

fn stat_of(pid: u32) -> Option<Stat> {
    Stat::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

pub(crate) fn memory_is_back(pid: u32, started: u64) -> bool {
    is_back(&Path::new("/proc").join(pid.to_string()), started)
}

/// A process frees its memory before it becomes a zombie, but its first thread may be a zombie while others run.
fn is_back(process: &Path, started: u64) -> bool {
    let stat = match fs::read_to_string(process.join("stat")) {
        Ok(text) => text,
        Err(error) => return is_gone(&error),
    };
    let Some(stat) = Stat::parse(&stat) else {
        return false;
    };
    if stat.started != started {
        return true;
    }
    if !stat.ended {
        return false;
    }
    let tasks = match fs::read_dir(process.join("task")) {
        Ok(tasks) => tasks,
        Err(error) => return is_gone(&error),
    };
    tasks
        .flatten()
        .all(|task| match fs::read_to_string(task.path().join("stat")) {
            Ok(text) => Stat::parse(&text).is_some_and(|stat| stat.ended),
            Err(error) => is_gone(&error),
        })
}

pub(crate) fn of_group(group: u32) -> io::Result<Vec<u32>> {
    let members = fs::read_dir("/proc")?.flatten().filter_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = stat_of(pid)?;
        let holds = stat.group == group && !memory_is_back(pid, stat.started);
        holds.then_some(pid)
    });
    Ok(members.collect())
}

/// Whether the process ended before the file was opened or read.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

/// The fields needed of `/proc/<pid>/stat`.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    ended: bool,
    group: u32,
    /// Ticks of all its threads, in user and kernel mode.
    ticks: u64,
    started: u64,
}

impl Stat {
    fn parse(text: &str) -> Option<Self> {
        // The name may contain anything, even brackets and spaces.
        let (_, fields) = text.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        Some(Self {
            ended: matches!(*fields.first()?, "Z" | "X" | "x"),
            group: u32::try_from(number(2)?).ok()?,
            ticks: number(11)?.saturating_add(number(12)?),
            started: number(19)?,
        })
    }
}

/// The sum of a rollup's anonymous, shared-memory and swap lines, in bytes.
fn given_back(rollup: &str) -> Option<u64> {
    let line = |name| number(rollup, name);
    let swap = line("SwapPss:").or_else(|| line("Swap:")).unwrap_or(0);
    line("Pss_Anon:")?
        .checked_add(line("Pss_Shmem:").unwrap_or(0))?
        .checked_add(swap)
}

/// The sum of a status's anonymous, shared-memory and swap lines, which kernel threads and zombies do not have.
fn counted(status: &str) -> Option<u64> {
    let line = |name| number(status, name);
    line("RssAnon:")?
        .checked_add(line("RssShmem:").unwrap_or(0))?
        .checked_add(line("VmSwap:").unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        io::{BufRead, BufReader},
        process::{Child, Command, Stdio},
    };

    #[test]
    fn clean_page_cache_does_not_count_as_reclaimable() {
        let rollup = "5581-7ffd ---p 00000000 00:00 0 [rollup]\nRss: 9000 kB\nPss: 8000 kB\nPss_Dirty: 70 kB\n\
                      Pss_Anon:     100 kB\nPss_File:    7860 kB\nPss_Shmem:      40 kB\nAnonymous: 120 kB\n\
                      Swap: 30 kB\nSwapPss:       20 kB\nLocked: 0 kB\n";
        assert_eq!(given_back(rollup), Some(160 * 1024));
        assert_eq!(given_back("Rss: 9000 kB\n"), None);
    }

    #[test]
    fn the_status_counters_have_the_same_parts() {
        let status = "VmRSS:\t 9000 kB\nRssAnon:\t 100 kB\nRssFile:\t 8860 kB\nRssShmem:\t 40 kB\nVmSwap:\t 20 kB\n";
        assert_eq!(counted(status), Some(160 * 1024));
        assert_eq!(counted("Name:\tkthreadd\nState:\tS\n"), None);
        assert!(held(std::process::id()).unwrap() > 0);
    }

    #[test]
    fn brackets_and_spaces_in_a_name_do_not_shift_fields() {
        let text = "77 (a) Z (b c) S 1 42 42 0 -1 4194560 9 0 0 0 30 12 0 0 20 0 1 0 123456 0 0\n";
        assert_eq!(
            Stat::parse(text),
            Some(Stat {
                ended: false,
                group: 42,
                ticks: 42,
                started: 123_456
            })
        );
        assert_eq!(Stat::parse("77 (a"), None);
        assert_eq!(Stat::parse("77 (a) S 1 2"), None);
    }

    #[test]
    fn allocated_memory_shows_in_the_footprint() {
        let before = footprint(std::process::id()).unwrap();
        // The optimizer would remove unused memory.
        let taken = std::hint::black_box(vec![1u8; 64 << 20]);
        let after = footprint(std::process::id()).unwrap();
        assert!(
            after >= before + (60 << 20),
            "{before} → {after}, for {} bytes",
            taken.len()
        );
    }

    #[test]
    fn a_missing_process_has_no_figures() {
        assert_eq!(footprint(u32::MAX), None);
        assert_eq!(cpu_ms(u32::MAX), None);
        assert_eq!(started(u32::MAX), None);
        assert!(memory_is_back(u32::MAX, 1));
    }

    #[test]
    fn work_shows_in_the_cpu_time_of_a_process() {
        let before = cpu_ms(std::process::id()).unwrap();
        let mut sum = 0_u64;
        // Until the kernel has counted it.
        while cpu_ms(std::process::id()).unwrap() < before + 30 {
            sum = std::hint::black_box((0..1_000_000_u64).fold(sum, u64::wrapping_add));
        }
    }

    /// Starts a shell in a group of its own, and waits until it reports that it runs.
    fn shell(script: &str) -> Child {
        use std::os::unix::process::CommandExt;
        let mut child = Command::new("sh")
            .args(["-c", script])
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        child
    }

    #[test]
    fn a_zombie_or_reaped_process_holds_no_memory() {
        let mut child = shell("echo; read _");
        let pid = child.id();
        let began = started(pid).unwrap();
        assert!(!memory_is_back(pid, began));
        assert_eq!(of_group(pid).unwrap(), [pid]);
        // The number belongs to another process, so the first one is gone.
        assert!(memory_is_back(pid, began + 1));
        child.kill().unwrap();
        // It has not been reaped: it becomes a zombie as soon as the kernel is done with it.
        while !memory_is_back(pid, began) {
            std::thread::yield_now();
        }
        assert_eq!(started(pid), Some(began), "it was reaped already");
        assert_eq!(of_group(pid).unwrap(), [0; 0]);
        child.wait().unwrap();
        assert_eq!(started(pid), None);
        assert!(memory_is_back(pid, began));
    }

    #[test]
    fn a_zombie_with_a_running_thread_still_holds_memory() {
        let process = tempfile::tempdir().unwrap();
        let stat = |state: char| {
            format!("7 (worker) {state} 1 7 7 0 -1 0 0 0 0 0 30 12 0 0 20 0 2 0 500 0 0\n")
        };
        fs::create_dir_all(process.path().join("task/7")).unwrap();
        fs::create_dir_all(process.path().join("task/8")).unwrap();
        fs::write(process.path().join("stat"), stat('Z')).unwrap();
        fs::write(process.path().join("task/7/stat"), stat('Z')).unwrap();
        for (other, back) in [('D', false), ('R', false), ('X', true), ('Z', true)] {
            fs::write(process.path().join("task/8/stat"), stat(other)).unwrap();
            assert_eq!(is_back(process.path(), 500), back, "{other}");
        }
        fs::write(process.path().join("stat"), "not one of these").unwrap();
        assert!(!is_back(process.path(), 500));
    }

    #[test]
    fn a_group_includes_children_of_an_ended_leader() {
        // A shell gives what it puts in the background an empty input.
        let mut leader = shell("exec 3<&0; sh -c 'echo; read _' <&3 & read _");
        let group = leader.id();
        let all = of_group(group).unwrap();
        assert_eq!(all.len(), 2, "{all:?}");
        // `wait` would close it, and the child would end by itself.
        let _input = leader.stdin.take();
        leader.kill().unwrap();
        leader.wait().unwrap();
        let left = of_group(group).unwrap();
        assert_eq!(left.len(), 1, "{left:?}");
        let child = left[0];
        let began = started(child).unwrap();
        rustix::process::kill_process(
            rustix::process::Pid::from_raw(child.cast_signed()).unwrap(),
            rustix::process::Signal::KILL,
        )
        .unwrap();
        while !memory_is_back(child, began) {
            std::thread::yield_now();
        }
        assert_eq!(of_group(group).unwrap(), [0; 0]);
    }
}

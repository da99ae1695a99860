//! Linux: pressure stall information, control groups, and a process's mappings.

mod cgroup;

use rustix::fs::{Advice, OFlags, fadvise};
use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::Path,
};
use tierbar_core::status::{Pressure, Ram};

/// Stall information tells of waiting, not of how much is left.
pub(crate) const PRESSURE_COUNTS_AVAILABLE: bool = false;

/// Percent of the last 10 seconds in which some task waited for memory.
const STALLED_WARNING: f64 = 10.0;
const STALLED_CRITICAL: f64 = 40.0;

/// The container's stall information if it has a limit of its own, else the machine's. Normal on kernels without.
pub(crate) fn pressure() -> Pressure {
    let limited = cgroup::limit(Path::new("/")).and_then(|limit| limit.pressure);
    let text = limited.or_else(|| fs::read_to_string("/proc/pressure/memory").ok());
    text.as_deref()
        .and_then(some_avg10)
        .map_or(Pressure::Normal, by_stall)
}

fn by_stall(percent: f64) -> Pressure {
    if percent >= STALLED_CRITICAL {
        Pressure::Critical
    } else if percent >= STALLED_WARNING {
        Pressure::Warning
    } else {
        Pressure::Normal
    }
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`
fn some_avg10(text: &str) -> Option<f64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    some.split_whitespace()
        .find_map(|field| field.strip_prefix("avg10="))?
        .parse()
        .ok()
}

/// The machine's memory as a container sees it: no more than the tightest limit around this process.
pub(crate) fn within_limits(machine: Ram) -> Ram {
    match cgroup::limit(Path::new("/")) {
        Some(limit) if limit.total_bytes < machine.total_bytes => Ram {
            total_bytes: limit.total_bytes,
            available_bytes: limit.available_bytes.min(machine.available_bytes),
            ..machine
        },
        _ => machine,
    }
}

/// Metal's, which Linux does not have.
pub(crate) fn working_set() -> Option<u64> {
    None
}

/// Opens a file so that reads of aligned blocks come from the disk.
pub(crate) fn open_uncached(path: &Path) -> io::Result<File> {
    let flags = OFlags::DIRECT.bits().cast_signed();
    match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        // A file system without direct reads: drop what is cached instead.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            let file = File::open(path)?;
            fadvise(&file, 0, None, Advice::DontNeed)?;
            Ok(file)
        }
        opened => opened,
    }
}

pub(crate) fn footprint(pid: u32) -> Option<u64> {
    given_back(&fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?)
}

/// The sum of a rollup's anonymous, shared-memory and swap lines, in bytes.
fn given_back(rollup: &str) -> Option<u64> {
    let line = |name: &str| {
        let value = rollup.lines().find_map(|line| line.strip_prefix(name))?;
        let kilobytes: u64 = value.trim().strip_suffix(" kB")?.trim().parse().ok()?;
        kilobytes.checked_mul(1024)
    };
    let swap = line("SwapPss:").or_else(|| line("Swap:")).unwrap_or(0);
    line("Pss_Anon:")?
        .checked_add(line("Pss_Shmem:").unwrap_or(0))?
        .checked_add(swap)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stall_information_is_graded_by_its_ten_second_mean() {
        let text = |avg10| {
            format!(
                "some avg10={avg10} avg60=99.00 avg300=99.00 total=7\nfull avg10=99.00 total=7\n"
            )
        };
        let level = |avg10| some_avg10(&text(avg10)).map(by_stall);
        assert_eq!(level("0.00"), Some(Pressure::Normal));
        assert_eq!(level("12.50"), Some(Pressure::Warning));
        assert_eq!(level("55.01"), Some(Pressure::Critical));
        assert_eq!(level("?"), None);
        assert_eq!(some_avg10(""), None);
    }

    #[test]
    fn clean_page_cache_is_not_part_of_what_an_end_gives_back() {
        let rollup = "5581-7ffd ---p 00000000 00:00 0 [rollup]\nRss: 9000 kB\nPss: 8000 kB\nPss_Dirty: 70 kB\n\
                      Pss_Anon:     100 kB\nPss_File:    7860 kB\nPss_Shmem:      40 kB\nAnonymous: 120 kB\n\
                      Swap: 30 kB\nSwapPss:       20 kB\nLocked: 0 kB\n";
        assert_eq!(given_back(rollup), Some(160 * 1024));
        assert_eq!(given_back("Rss: 9000 kB\n"), None);
    }

    #[test]
    fn memory_that_a_process_takes_shows_in_its_footprint() {
        let before = footprint(std::process::id()).unwrap();
        // An optimiser would do without memory that nobody looks at.
        let taken = std::hint::black_box(vec![1u8; 64 << 20]);
        let after = footprint(std::process::id()).unwrap();
        assert!(
            after >= before + (60 << 20),
            "{before} → {after}, for {} bytes",
            taken.len()
        );
    }

    #[test]
    fn a_process_that_does_not_exist_has_no_footprint() {
        assert_eq!(footprint(u32::MAX), None);
    }
}

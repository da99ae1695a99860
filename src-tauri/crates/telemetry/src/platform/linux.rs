//! Linux: `/proc`, `/sys`, control groups and pressure stall information.

mod announced;
mod cgroup;
mod energy;
mod machine;
mod process;
mod slow;
mod stalls;
#[cfg(test)]
mod testing;

pub use announced::PressureListener;
pub(crate) use energy::energy;
pub(crate) use machine::read;
pub use process::{cpu_ms, footprint};
pub(crate) use process::{held, memory_is_back, of_group, started};
pub(crate) use slow::{power, thermal};

use super::MachineMemory;
use rustix::{
    fs::{Advice, OFlags, fadvise},
    time::{ClockId, clock_gettime},
};
use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::Path,
    time::Duration,
};

#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "libc")]
pub fn return_memory() {
    // SAFETY: glibc's, which locks its arenas; it touches no memory that is in use.
    unsafe { libc::malloc_trim(0) };
}

/// Other allocators return large pieces at once.
#[cfg(not(target_env = "gnu"))]
pub fn return_memory() {}

/// `/proc` is counted anew at each reading.
pub const MEMORY_INTERVAL: Duration = Duration::ZERO;

pub fn machine_memory() -> MachineMemory {
    MachineMemory {
        held_bytes: machine::held_by_all(),
        available_bytes: read().ram_available_bytes,
    }
}

pub fn oom_kills() -> Option<u64> {
    number(&fs::read_to_string("/proc/vmstat").ok()?, "oom_kill")
}

/// Returns the number of the line that begins with a key such as `MemTotal:`, in bytes if it is in kB, which have 1024.
fn number(text: &str, key: &str) -> Option<u64> {
    let mut lines = text.lines().map(str::split_whitespace);
    let mut fields = lines.find_map(|mut fields| (fields.next()? == key).then_some(fields))?;
    let number: u64 = fields.next()?.parse().ok()?;
    match fields.next() {
        Some("kB") => number.checked_mul(1024),
        _ => Some(number),
    }
}

/// Returns the text of a small file, without the end of its line.
fn read_line(folder: &Path, name: &str) -> Option<String> {
    let text = fs::read_to_string(folder.join(name)).ok()?;
    Some(text.trim().to_owned())
}

/// Stall information measures waiting, not available memory.
pub(crate) const PRESSURE_COUNTS_AVAILABLE: bool = false;

/// Returns the milliseconds since the system started: awake, and asleep.
pub(crate) fn clocks() -> (u64, u64) {
    let of = |clock| {
        let time = clock_gettime(clock);
        let (seconds, nanos) = (time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs());
        seconds
            .saturating_mul(1000)
            .saturating_add(nanos / 1_000_000)
    };
    let awake = of(ClockId::Monotonic);
    (awake, of(ClockId::Boottime).saturating_sub(awake))
}

/// Only a script sets it on Linux: a display server is read over a connection that can hang, and readings must not.
pub(crate) fn full_screen() -> Option<bool> {
    None
}

/// Metal's, which Linux does not have.
pub(crate) fn working_set() -> Option<u64> {
    None
}

/// Linux doesn't say which cores are the fast ones.
pub(crate) fn performance_cores() -> Option<usize> {
    None
}

pub(crate) fn gpu_cores() -> Option<usize> {
    None
}

/// Nothing needs it here: reads past the cache see what was written and synced.
pub(crate) fn skip_cache(_: &File) -> io::Result<()> {
    Ok(())
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

fn page_size() -> u64 {
    rustix::param::page_size() as u64
}
